"""Safetensors files as numpy arrays. Without Paddle."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors

from onion.checkpointing.atomic_files import replace_file
from onion.errors import WeightsError
from onion.models.formats.paths import is_file, reading

# Types of stored weights -> numpy's type of the bytes.
FLOAT_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
OTHER_TYPES = {"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1", "BOOL": "?"}


def put_file(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file atomically; raise a WeightsError if it cannot be written."""
    try:
        replace_file(path, data)
    except OSError as error:
        raise WeightsError(f"{path}: cannot write: {error.strerror}") from error


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Read a safetensors file.

    Numpy has no bfloat16, and Paddle on the CPU computes in float32, so every floating type becomes float32. float32 is
    not copied: those arrays are read-only views of the file.

    Returns:
        name -> array, in the order of the file.

    Raises:
        WeightsError: the file is missing, cannot be read, or is damaged.
    """
    header, data = _parts(path)
    header.pop("__metadata__", None)
    return {name: _array(path, name, entry, data) for name, entry in header.items()}


def read_metadata(path: Path) -> dict[str, str]:
    """Return the metadata of a safetensors file."""
    texts: dict[str, str] = _parts(path)[0].get("__metadata__", {})
    return texts


def _parts(path: Path) -> tuple[dict[str, Any], np.ndarray]:
    """Return the header, and the bytes behind it."""
    if not is_file(path):
        raise WeightsError(f"{path}: no such file")
    with reading(path), path.open("rb"):  # the library reports files that it cannot open as damaged or missing
        pass
    try:
        # The library checks the header against the file's length, but does not return bfloat16 as numpy.
        with safetensors.safe_open(str(path), framework="np"):
            pass
        content = np.memmap(path, dtype=np.uint8, mode="r")
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise WeightsError(f"{path}: damaged or not a safetensors file ({error}); download it again") from error
    start = 8 + int(content[:8].view("<u8")[0])
    return json.loads(content[8:start].tobytes()), content[start:]


def _array(path: Path, name: str, entry: dict[str, Any], data: np.ndarray) -> np.ndarray:
    kind = {**FLOAT_TYPES, **OTHER_TYPES}.get(entry["dtype"])
    if kind is None:
        raise WeightsError(f"{path}: {name} is stored as {entry['dtype']}, which is not supported")
    begin, end = entry["data_offsets"]
    raw = data[begin:end]
    # The format does not guarantee alignment; unaligned arrays are slow, and some readers do not support them.
    aligned = raw if raw.ctypes.data % 8 == 0 else np.array(raw)
    try:
        array = aligned.view(kind).reshape(entry["shape"])
    except (ValueError, OverflowError) as error:  # without values: the library accepts any sizes beside a 0
        raise WeightsError(f"{path}: {name} has an impossible shape ({error}); download it again") from error
    return from_bfloat16(array) if entry["dtype"] == "BF16" else as_float32(array)


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    """Convert bfloat16, given as uint16, to float32, whose upper half it is."""
    wide = bits.astype(np.uint32)
    wide <<= 16
    return wide.view(np.float32)


def as_float32(array: np.ndarray) -> np.ndarray:
    """Convert floating values to float32, without a copy if they are; too large ones become infinite."""
    with np.errstate(over="ignore"):  # the check of the weights refuses them by name
        return array.astype(np.float32, copy=False) if array.dtype.kind == "f" else array


def write_safetensors(path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Write ``arrays`` to a safetensors file, replaced atomically; one array at a time is copied.

    Args:
        path: the file; its folder exists.
        arrays: name -> array, possibly a view.
        metadata: texts; readers check ``format`` among them.

    Raises:
        WeightsError: the file cannot be written, or the format does not support an array's type.
    """
    names = {np.dtype(kind): name for name, kind in {**FLOAT_TYPES, **OTHER_TYPES}.items() if name != "BF16"}
    header: dict[str, dict[str, Any]] = {"__metadata__": dict(metadata)}
    # Large types first, like the format's own writer, so that every array is aligned.
    order = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    begin = 0
    for name in order:
        array = arrays[name]
        if array.dtype not in names:
            raise WeightsError(f"{path}: {name} has the type {array.dtype}, which safetensors files do not support")
        end = begin + array.nbytes
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
        begin = end
    put_file(path, _pieces(header, [arrays[name] for name in order]))


def _pieces(header: dict[str, dict[str, Any]], arrays: list[np.ndarray]) -> Iterator[bytes]:
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    yield len(head).to_bytes(8, "little") + head
    for array in arrays:
        yield array.tobytes()
