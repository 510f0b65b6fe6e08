"""Paddle's ``.pdparams``: a pickled dict of numpy arrays, read without executing the pickle. Without Paddle.

Source of the format: Paddle ``python/paddle/framework/io.py`` (``paddle.save``).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from onion.errors import WeightsError
from onion.models.formats.paths import reading
from onion.models.formats.safe_pickle import NUMPY_NAMES, PickledArray, PickleReader, numpy_calls
from onion.models.formats.safetensors_file import as_float32, from_bfloat16

# Entries besides the arrays: the names of the parameters in the program, and the arrays that are stored in slices.
PROGRAM_NAMES = "StructuredToParameterName@@"
SLICES = "UnpackBigParamInfor@@"


def read_pdparams(path: Path) -> dict[str, np.ndarray]:
    """Read a file written by ``paddle.save``: a dict of arrays, or of tensors, which are stored as (name, array).

    bfloat16, stored as its bits in uint16, and other floating types become float32; float32 is not copied.

    Returns:
        name -> read-only array, in the order of the file.

    Raises:
        WeightsError: the file is missing or damaged, contains something other than arrays, or a pickle that needs other
            functions (nothing is executed).
    """
    with reading(path), path.open("rb") as file:
        stored = PickleReader(path, numpy_calls(), names=NUMPY_NAMES).read(file)
    if not isinstance(stored, dict):
        raise WeightsError(f"{path}: holds a {type(stored).__name__}, not parameters by name")
    stored.pop(PROGRAM_NAMES, None)
    slices = stored.pop(SLICES, {})
    if not isinstance(slices, dict):
        raise WeightsError(f"{path}: {SLICES} is a {type(slices).__name__}, not a dict; download it again")
    arrays = {}
    while stored:  # emptied on the way, to free what has been converted
        name = next(iter(stored))
        arrays[str(name)] = _floats(_array(path, name, stored.pop(name)))
    for name in slices:
        _join(path, name, slices[name], arrays)
    return arrays


def _array(path: Path, name: Any, value: Any) -> np.ndarray:
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        value = value[1]
    if not isinstance(value, PickledArray) or value.value is None:
        raise WeightsError(f"{path}: {name} is a {type(value).__name__}, not an array")
    return value.value


def _floats(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "u" and array.dtype.itemsize == 2:
        return from_bfloat16(array)
    return as_float32(array)


def _join(path: Path, name: str, info: Any, arrays: dict[str, np.ndarray]) -> None:
    """Join an array of more than 1 GB, which protocols 2 and 3 store in flat slices."""
    try:
        shape = tuple(info["OriginShape"])
        flat = [arrays.pop(part) for part in info["slices"] if isinstance(part, str)]
        if sum(part.size for part in flat) != math.prod(shape):
            raise ValueError("sizes differ")
        arrays[str(name)] = np.concatenate(flat).reshape(shape)
    except (TypeError, KeyError, ValueError) as error:
        raise WeightsError(f"{path}: {name}: its slices do not form an array; download it again") from error
