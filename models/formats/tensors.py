"""Safetensors files as numpy arrays, and writing files atomically. Without Paddle."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import safetensors

from onion.disk import replace_file
from onion.errors import WeightsError

# What the weights of an encoder may be stored as; the value is how numpy reads the bytes.
FLOAT_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
OTHER_TYPES = {"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"}


def put_file(path: Path, data: bytes | Iterable[bytes]) -> None:
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
    return from_bfloat16(array) if entry["dtype"] == "BF16" else as_float32(array)


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    """float32 of bfloat16 values, which come as uint16: they are the upper half of a float32."""
    wide = bits.astype(np.uint32)
    wide <<= 16
    return wide.view(np.float32)


def as_float32(array: np.ndarray) -> np.ndarray:
    """Floating values as float32, not copied where they are; others as they are."""
    return array.astype(np.float32, copy=False) if array.dtype.kind == "f" else array


def write_safetensors(path: Path, arrays: Mapping[str, np.ndarray], format_name: str = "pd") -> None:
    """Write ``arrays`` to a safetensors file, replaced as a whole or not at all; one array at a time is copied.

    Args:
        path: the file; its folder exists.
        arrays: name -> array; views are written as they look.
        format_name: what the file's metadata names as its format; readers look at it.

    Raises:
        WeightsError: the file cannot be written, or an array is of a type that the format does not have.
    """
    names = {np.dtype(kind): name for name, kind in {**FLOAT_TYPES, **OTHER_TYPES}.items() if name != "BF16"}
    header: dict[str, dict] = {"__metadata__": {"format": format_name}}
    # Large types first, as the format's own writer does: then every array begins where its type may.
    order = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    begin = 0
    for name in order:
        array = arrays[name]
        if array.dtype not in names:
            raise WeightsError(f"{path}: {name} is of the type {array.dtype}, which safetensors files cannot hold")
        end = begin + array.nbytes
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
        begin = end
    put_file(path, _pieces(header, [arrays[name] for name in order]))


def _pieces(header: dict, arrays: list[np.ndarray]) -> Iterator[bytes]:
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    yield len(head).to_bytes(8, "little") + head
    for array in arrays:
        yield array.tobytes()
