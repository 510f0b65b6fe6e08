"""PyTorch's ``pytorch_model.bin``, read without PyTorch and without executing its pickle. Without Paddle.

A pickle describes tensors as parts of storages, whose bytes are in other files of a zip, or behind the pickle.

Source of the format: PyTorch ``torch/serialization.py`` and ``torch/_utils.py``. The zip file of PyTorch >= 1.6
contains ``<name>/data.pkl`` and ``<name>/data/<key>``; the older format is five pickles in a row, then the storages.
"""

from __future__ import annotations

import math
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import attrs
import numpy as np

from onion.errors import WeightsError
from onion.models.formats.paths import reading
from onion.models.formats.safe_pickle import MAPPING, PickleReader
from onion.models.formats.safetensors_file import as_float32, from_bfloat16

STORAGES = {
    "Float": "<f4", "Double": "<f8", "Half": "<f2", "BFloat16": "<u2",
    "Long": "<i8", "Int": "<i4", "Short": "<i2", "Char": "i1", "Byte": "u1", "Bool": "?",
}  # fmt: skip
STORAGE_NAMES = {f"torch.{name}Storage": name for name in STORAGES}
MAGIC = 0x1950A86A20F9469CFC6C  # the first pickle of the older format


@attrs.frozen
class Storage:
    """The bytes that tensors are views of: their key, type and number of values."""

    key: str
    kind: str
    count: int


@attrs.frozen
class Tensor:
    """A view of a storage, in values: offset, sizes and strides."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]


def read_torch(path: Path) -> dict[str, np.ndarray]:
    """Read a state dict written by ``torch.save``.

    Floating types become float32; float32 is not copied. Tied weights, which share a storage, share it here too.

    Returns:
        name -> read-only array, in the order of the file.

    Raises:
        WeightsError: the file is missing or damaged, contains something other than tensors, or a pickle that needs
            other functions (nothing is executed).
    """
    try:
        with reading(path), path.open("rb") as file:
            if zipfile.is_zipfile(file):
                with zipfile.ZipFile(file) as archive:
                    return _from_zip(path, archive)
            file.seek(0)
            if file.read(2) == b"PK":
                raise WeightsError(f"{path}: damaged (a zip file that is cut short); download it again")
            file.seek(0)
            return _from_row(path, file)
    except (zipfile.BadZipFile, EOFError, RuntimeError, ValueError, OverflowError, struct.error) as error:
        raise WeightsError(f"{path}: damaged ({error}); download it again") from error


def _from_zip(path: Path, archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    entries = {info.filename: info for info in archive.infolist()}
    if any(info.compress_type != zipfile.ZIP_STORED for info in entries.values()):
        # PyTorch does not compress; this also refuses small files that unpack to terabytes.
        raise WeightsError(f"{path}: a compressed zip file, so not PyTorch's; unpack it")
    root = next((name[: -len("data.pkl")] for name in entries if name.endswith("/data.pkl")), None)
    if root is None:
        raise WeightsError(f"{path}: a zip file without data.pkl, so not PyTorch's; download it again")
    if f"{root}byteorder" in entries and archive.read(f"{root}byteorder")[:6] != b"little":
        raise WeightsError(f"{path}: written on a big-endian machine, which is not supported")

    def load(storage: Storage) -> np.ndarray:
        info = entries.get(f"{root}data/{storage.key}")
        expected = storage.count * np.dtype(STORAGES[storage.kind]).itemsize
        if info is None or info.file_size != expected:
            raise WeightsError(f"{path}: storage {storage.key} is missing or not {expected} bytes; download it again")
        return np.frombuffer(archive.read(info), STORAGES[storage.kind])

    with archive.open(f"{root}data.pkl") as file:
        stored = _reader(path).read(file)  # type: ignore[arg-type]  # a binary file that only reads
    return _arrays(path, stored, load)


def _from_row(path: Path, file: BinaryIO) -> dict[str, np.ndarray]:
    """Read the older format: magic number, protocol version, system, state dict, storage keys; then every storage."""
    reader = _reader(path)
    if reader.read(file) != MAGIC:
        raise WeightsError(f"{path}: not a file of PyTorch")
    reader.read(file)
    system = reader.read(file)
    if not isinstance(system, dict) or not system.get("little_endian"):
        raise WeightsError(f"{path}: written on a big-endian machine, which is not supported")
    stored, keys = reader.read(file), reader.read(file)
    kinds = {value.storage.key: value.storage for value in _values(stored) if isinstance(value, Tensor)}
    size = os.fstat(file.fileno()).st_size
    loaded = {}
    for key in keys if isinstance(keys, list) else []:
        count = int.from_bytes(file.read(8), "little")
        if not isinstance(key, str) or key not in kinds or kinds[key].count != count:
            raise WeightsError(f"{path}: a storage does not match its description; download it again")
        length = count * np.dtype(STORAGES[kinds[key].kind]).itemsize
        if length > size - file.tell():
            raise WeightsError(f"{path}: cut short; download it again")
        loaded[key] = np.frombuffer(file.read(length), STORAGES[kinds[key].kind])

    def load(storage: Storage) -> np.ndarray:
        if storage.key not in loaded:
            raise WeightsError(f"{path}: storage {storage.key} is missing; download it again")
        return loaded[storage.key]

    return _arrays(path, stored, load)


def _values(stored: Any) -> list[Any]:
    return list(stored.values()) if isinstance(stored, dict) else []


def _arrays(path: Path, stored: Any, load: Callable[[Storage], np.ndarray]) -> dict[str, np.ndarray]:
    if not isinstance(stored, dict):
        raise WeightsError(f"{path}: holds a {type(stored).__name__}, not parameters by name")
    storages: dict[tuple[str, str], np.ndarray] = {}
    arrays = {}
    for name, value in stored.items():
        if not isinstance(value, Tensor):
            raise WeightsError(f"{path}: {name} is a {type(value).__name__}, not a tensor; a state dict is needed")
        key = (value.storage.key, value.storage.kind)
        if key not in storages:
            values = load(value.storage)
            storages[key] = from_bfloat16(values) if value.storage.kind == "BFloat16" else as_float32(values)
        arrays[str(name)] = _view(path, name, value, storages[key])
    return arrays


def _view(path: Path, name: str, tensor: Tensor, values: np.ndarray) -> np.ndarray:
    if math.prod(tensor.shape) == 0:
        return np.empty(tensor.shape, values.dtype)
    last = tensor.offset + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.steps, strict=True))
    # A view may not have more values than its storage: one number with a shape of 10^12 would fill the memory.
    if last >= len(values) or math.prod(tensor.shape) > len(values):
        raise WeightsError(f"{path}: {name} reaches beyond its storage; download it again")
    steps = [step * values.itemsize for step in tensor.steps]
    return np.lib.stride_tricks.as_strided(values[tensor.offset :], tensor.shape, steps, writeable=False)


def _reader(path: Path) -> PickleReader:
    calls: dict[str, Callable[..., Any]] = {
        **MAPPING,
        "torch._utils._rebuild_tensor": lambda *given: _tensor(*given[:4]),
        "torch._utils._rebuild_tensor_v2": lambda *given: _tensor(*given[:4]),
        "torch._utils._rebuild_parameter": lambda tensor, *_: tensor,
    }
    return PickleReader(path, calls, _storage, frozenset(STORAGE_NAMES))


def _storage(identity: Any) -> Storage:
    """Read a persistent id: the word storage, its class, key, device, number of values[, view of another storage]."""
    word, kind, key, _, count, *view = identity
    if word != "storage" or not isinstance(key, str) or not isinstance(count, int) or any(view):
        raise ValueError("a reference to something other than a storage")
    return Storage(key, STORAGE_NAMES[kind.full], count)


def _tensor(storage: Any, offset: Any, shape: Any, steps: Any) -> Tensor:
    numbers = (offset, *shape, *steps)
    if not isinstance(storage, Storage) or not all(isinstance(number, int) and number >= 0 for number in numbers):
        raise ValueError("a tensor without a storage")
    if len(shape) != len(steps):
        raise ValueError("a tensor with more sizes than strides")
    return Tensor(storage, offset, tuple(shape), tuple(steps))
