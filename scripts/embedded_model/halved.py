"""The folder of an encoder with weights of 16 bits; the same folder gives the same bytes."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from onion.errors import WeightsError
from onion.models.formats.layouts import SAFETENSORS
from onion.models.formats.safetensors_file import read_metadata, read_safetensors, write_safetensors

HALF = np.float16
BESIDE = ("config.json", "tokenizer.json", "tokenizer_config.json")
"""The other files of a folder that onion writes."""


def write_halved(encoder: Path, folder: Path) -> None:
    """Write an encoder with its weights in float16, under the names that they have; nothing else is changed.

    Args:
        encoder: a folder that onion has written.
        folder: there is, and is empty.

    Raises:
        WeightsError: a file is missing or damaged, or a weight is too large for float16.
    """
    arrays = read_safetensors(encoder / SAFETENSORS)
    halved = {name: _half(name, array, encoder) for name, array in arrays.items()}
    write_safetensors(folder / SAFETENSORS, halved, read_metadata(encoder / SAFETENSORS))
    for name in BESIDE:
        if not (encoder / name).is_file():
            raise WeightsError(f"{encoder / name}: no such file; give the folder `encoder` of `onion pretrain`")
        shutil.copyfile(encoder / name, folder / name)


def _half(name: str, array: np.ndarray, encoder: Path) -> np.ndarray:
    if array.size and not float(np.abs(array).max()) <= float(np.finfo(HALF).max):  # NaN compares false too
        raise WeightsError(f"{encoder}: {name} has values that float16 does not hold; keep it in 32 bits")
    return array.astype(HALF)
