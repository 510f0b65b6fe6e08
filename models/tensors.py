"""Safetensors files as numpy arrays, and writing files atomically. Without Paddle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy

from onion.disk import replace_file
from onion.errors import WeightsError

# What the weights of an encoder may be stored as; the value is how numpy reads the bytes.
FLOAT_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
OTHER_TYPES = {"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"}


def put_file(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all.

    Raises:
        WeightsError: the file cannot be written.
    """
    try:
        replace_file(path, data)
    except OSError as error:
        raise WeightsError(f"{path}: cannot write: {error.strerror}") from error


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Read a safetensors file.

    Numpy has no bfloat16, and Paddle on the CPU computes in float32, so every floating type becomes float32. float32
    itself is not copied: those arrays are read-only views of the file.

    Returns:
        name -> array, in the order of the file.

    Raises:
        WeightsError: no such file, or one that is cut short or otherwise not whole.
    """
    if not path.is_file():
        raise WeightsError(f"{path}: no such file")
    try:
        # The library checks the header against the file's length; it cannot hand out bfloat16 as numpy, so we read on.
        with safetensors.safe_open(str(path), framework="np"):
            pass
        content = np.memmap(path, dtype=np.uint8, mode="r")
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise WeightsError(f"{path}: damaged or not a safetensors file ({error}); fetch it again") from error
    start = 8 + int(content[:8].view("<u8")[0])
    header = json.loads(content[8:start].tobytes())
    header.pop("__metadata__", None)
    return {name: _array(path, name, entry, content[start:]) for name, entry in header.items()}


def _array(path: Path, name: str, entry: dict, data: np.ndarray) -> np.ndarray:
    kind = {**FLOAT_TYPES, **OTHER_TYPES}.get(entry["dtype"])
    if kind is None:
        raise WeightsError(f"{path}: {name} is stored as {entry['dtype']}, which is not supported")
    begin, end = entry["data_offsets"]
    raw = data[begin:end]
    # The format promises no alignment; numpy computes on unaligned arrays slowly, and some of its readers not at all.
    aligned = raw if raw.ctypes.data % 8 == 0 else np.array(raw)
    array = aligned.view(kind).reshape(entry["shape"])
    if entry["dtype"] == "BF16":  # the upper half of a float32
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32, copy=False) if entry["dtype"] in FLOAT_TYPES else array


def write_safetensors(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write ``arrays`` to a safetensors file, replaced as a whole or not at all.

    Raises:
        WeightsError: the file cannot be written.
    """
    # safetensors writes the memory of an array as it lies, so a transposed view has to be copied first.
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    put_file(path, safetensors.numpy.save(whole, metadata={"format": "pd"}))
