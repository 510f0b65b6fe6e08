"""LoRA in a training: adapters as the settings ask for them, and where the frozen encoder is stored.

Checkpoints hold what is trained (``TrainedPart``); the rest is stored once, in the run's folder:

    run/frozen.safetensors     the encoder without adapters and pooler
    run/step-*/                adapters, pooler, head, and their optimizer's state

Whoever reads a run (evaluate, predict, --init-from) merges both into the weights of an ordinary network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from paddle import nn

from onion import RunnerItem, State
from onion.checkpointing import checkpoint
from onion.errors import CheckpointError, DataError, WeightsError
from onion.items.freeze import matching
from onion.items.gradient_machine import load_network, saved_network
from onion.models.adapter import has_adapters, merged
from onion.models.formats.safetensors_file import read_metadata, read_safetensors, write_safetensors
from onion.models.lora import FrozenPart, add_lora
from onion.paths import anchored
from onion.tasks.finetune.settings import TrainingSettings

FROZEN = "frozen.safetensors"
DIGEST = "sha256"
"""Key in the metadata of the file."""


def add_adapters(network: nn.Layer, settings: TrainingSettings) -> None:
    """Add the adapters that the settings of a training ask for.

    Raises:
        CompositionError: a setting does not fit the encoder.
        DataError: ``freeze`` would freeze all adapters.
    """
    if settings.lora_rank is None:
        return
    add_lora(network, settings.lora_rank, settings.lora_alpha, settings.lora_dropout, settings.lora_targets)
    frozen = {id(parameter) for pattern in settings.freeze for parameter in matching(network, pattern)}
    adapters = [each for path, each in network.named_parameters() if has_adapters([path])]
    if all(id(adapter) in frozen for adapter in adapters):
        raise DataError("freeze matches all adapters of lora_rank, which freezes the rest of the encoder; set only one")


class FrozenEncoder(RunnerItem):
    """Store the frozen part of a network with adapters in the folder of its training, and take it from there.

    It stands inside the RunFolder, which locks the folder. A resumed run has the parameters that it began with, even if
    the encoder's folder has changed.

    Args:
        output: the folder.
        network: the network of the training.

    Raises:
        CheckpointError: the file cannot be written, is damaged, or belongs to another encoder.
    """

    passive = True
    keep_for_inference = False

    def __init__(self, output: Path, network: nn.Layer) -> None:
        self._folder, self._part = anchored(output), FrozenPart(network)

    def initialize(self, state: State) -> None:
        """Store it if the run begins, else load it."""
        if (self._folder / FROZEN).exists() or checkpoint.steps_in(self._folder):
            load_network(self._part, read_frozen(self._folder))
        else:
            write_frozen(self._folder, {path: each.numpy() for path, each in saved_network(self._part).items()})


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
        write_safetensors(folder / FROZEN, arrays, {"format": "pd", DIGEST: _digest(arrays)})
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
        if metadata.get(DIGEST) == _digest(arrays):
            return arrays
        why = f"{folder / FROZEN}: damaged; its checksum differs"
    raise CheckpointError(f"{why}. It holds the encoder of a run with lora_rank; restore the file, or train again.")


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    found = hashlib.sha256()
    for path in sorted(arrays):
        found.update(path.encode())
        found.update(np.ascontiguousarray(arrays[path]).tobytes())
    return found.hexdigest()
