"""The tensor files of Paddle 1.x, one for each variable in static ERNIE's ``params/``. Without Paddle.

A file is: format version (uint32, 0); levels of detail (uint64 count, each a uint64 number of bytes and these); version
of the tensor (uint32, 0); size of the description (int32); the description, a protobuf with the type in field 1 and the
sizes in field 2; the values, little-endian.

Source: Paddle ``phi/core/framework/dense_tensor_serialize.cc``, ``framework/tensor_util.cc``, ``framework.proto``.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from onion.errors import WeightsError
from onion.models.formats.paths import reading
from onion.models.formats.protobuf import fields, varint
from onion.models.formats.safetensors_file import as_float32, from_bfloat16

# framework.proto, VarType.Type
TYPES = {0: "?", 1: "<i2", 2: "<i4", 3: "<i8", 4: "<f2", 5: "<f4", 6: "<f8", 20: "u1", 21: "i1", 22: "<u2"}
BFLOAT16 = 22
LONGEST_DESCRIPTION = 1 << 16


def read_static_folder(folder: Path, wanted: Callable[[str], bool]) -> dict[str, np.ndarray]:
    """Read the variables of a folder, one file each, whose names ``wanted`` accepts."""
    with reading(folder):
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_file() and wanted(entry.name))
    return {name: read_static(folder / name) for name in names}


def read_static(path: Path) -> np.ndarray:
    """Read one variable; floating types become float32. Raise a WeightsError if the file is damaged."""
    try:
        with reading(path), path.open("rb") as file:
            left = os.fstat(file.fileno()).st_size
            kind, shape = _header(file, left)
            if kind not in TYPES:
                raise ValueError(f"values of type {kind}")
            dtype, left = np.dtype(TYPES[kind]), left - file.tell()
            if left != math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{left} bytes of values for the shape {list(shape)}")
            values = np.fromfile(file, dtype).reshape(shape)
    except (ValueError, struct.error) as error:
        raise WeightsError(f"{path}: damaged or not a Paddle tensor ({error}); download it again") from error
    return from_bfloat16(values) if kind == BFLOAT16 else as_float32(values)


def _header(file: BinaryIO, size: int) -> tuple[int, tuple[int, ...]]:
    """Return type and sizes, and leave the file where the values begin."""
    version, levels = struct.unpack("<IQ", file.read(12))
    if version or levels * 8 > size:
        raise ValueError("an unknown format version")
    for _ in range(levels):
        (length,) = struct.unpack("<Q", file.read(8))
        if length > size:
            raise ValueError("cut short")
        file.seek(length, os.SEEK_CUR)
    version, length = struct.unpack("<Ii", file.read(8))
    if version or not 0 < length <= LONGEST_DESCRIPTION:
        raise ValueError("an unknown tensor version")
    description = file.read(length)
    if len(description) != length:
        raise ValueError("cut short")
    return _description(description)


def _description(data: bytes) -> tuple[int, tuple[int, ...]]:
    """TensorDesc: field 1 is the type; field 2 the sizes, one by one or packed."""
    kind: int | None = None
    shape: list[int] = []
    for number, value in fields(data):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number == 2:
            shape += [value] if isinstance(value, int) else _varints(value)
        else:
            raise ValueError("an unknown description")
    if kind is None or any(size >= 1 << 62 for size in shape):  # -1, an unknown size, is 2^64 - 1 here
        raise ValueError("a description without type or sizes")
    return kind, tuple(shape)


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value
