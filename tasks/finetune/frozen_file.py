"""The encoder of a training with adapters, which is stored once, in the folder of the run. Without Paddle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onion.errors import CheckpointError, WeightsError
from onion.models.formats.safetensors_file import read_metadata, read_safetensors, write_safetensors
from onion.models.merging import has_adapters, merged
from onion.tasks.data.features.hashing import digest_of_arrays
from onion.tasks.finetune.run_files import FROZEN

DIGEST = "sha256"
"""Key in the metadata of the file."""


def whole(learned: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return the weights of a whole network, of which a run has saved ``learned``; adapters are merged.

    Raises:
        CheckpointError: the frozen part is missing in the folder of the run, or damaged.
    """
    return merged({**read_frozen(folder), **learned}) if has_adapters(learned) else learned


def write_frozen(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write frozen parameters by path, atomically and with a checksum.

    Raises:
        CheckpointError: the file cannot be written.
    """
    try:
        write_safetensors(folder / FROZEN, arrays, {"format": "pd", DIGEST: digest_of_arrays(arrays)})
    except WeightsError as error:
        raise CheckpointError(str(error)) from None


def read_frozen(folder: Path) -> dict[str, np.ndarray]:
    """Read what :func:`write_frozen` wrote.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    try:
        arrays, metadata = read_safetensors(folder / FROZEN), read_metadata(folder / FROZEN)
    except WeightsError as error:
        why = str(error)
    else:
        if metadata.get(DIGEST) == digest_of_arrays(arrays):
            return arrays
        why = f"{folder / FROZEN}: damaged; its checksum differs"
    raise CheckpointError(f"{why}. It holds the encoder of a run with lora_rank; restore the file, or train again.")
