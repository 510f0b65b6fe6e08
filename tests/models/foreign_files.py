"""Files as other programs write them, made byte by byte and without the code under test."""

from __future__ import annotations

import io
import math
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np

TORCH_STORAGES = {"f4": "Float", "f8": "Double", "f2": "Half", "i8": "Long", "u2": "BFloat16", "u1": "Byte"}


def text(value: str) -> bytes:
    """The opcode that pushes a string."""
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def number(value: int) -> bytes:
    """The opcode that pushes an integer."""
    return b"J" + struct.pack("<i", value)


def tuple_of(*parts: bytes) -> bytes:
    """The opcodes that push a tuple."""
    return b"(" + b"".join(parts) + b"t"


def named(module: str, name: str) -> bytes:
    """The opcode that pushes ``module.name``."""
    return f"c{module}\n{name}\n".encode()


def torch_tensor(key: str, array: np.ndarray, offset: int = 0, count: int | None = None, tail: bytes = b"") -> bytes:
    """The opcodes that push a tensor which is a view of the storage ``key``, as torch >= 0.4 writes them."""
    kind = TORCH_STORAGES[array.dtype.str[1:]]
    count = array.size + offset if count is None else count
    storage = tuple_of(text("storage"), named("torch", f"{kind}Storage"), text(key), text("cpu"), number(count), tail)
    steps = tuple_of(*(number(step // array.itemsize) for step in array.strides))
    hooks = named("collections", "OrderedDict") + b")R"
    shape = tuple_of(*(number(size) for size in array.shape))
    given = tuple_of(storage + b"Q", number(offset), shape, steps, b"\x89", hooks)
    return named("torch._utils", "_rebuild_tensor_v2") + given + b"R"


def torch_state(tensors: dict[str, bytes]) -> bytes:
    """The pickle of a state dict, with the attribute that ``Module.state_dict`` gives it."""
    items = b"".join(text(name) + tensor for name, tensor in tensors.items())
    ordered = named("collections", "OrderedDict") + b")R"
    return b"\x80\x02" + ordered + b"(" + items + b"u}" + text("_metadata") + ordered + b"sb."


def write_torch_zip(path: Path, state: bytes, storages: dict[str, bytes], order: bytes = b"little") -> Path:
    """torch's zip file: the pickle, and each storage."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", state)
        archive.writestr("archive/byteorder", order)
        for key, data in storages.items():
            archive.writestr(f"archive/data/{key}", data)
        archive.writestr("archive/version", "3\n")
    return path


def write_torch(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    """torch's zip file of these arrays, each with a storage of its own."""
    tensors = {name: torch_tensor(str(i), array) for i, (name, array) in enumerate(arrays.items())}
    return write_torch_zip(path, torch_state(tensors), {str(i): a.tobytes() for i, a in enumerate(arrays.values())})


def write_old_torch(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    """torch's form before 1.6: pickles in a row, then number of values and bytes of each storage."""
    state = torch_state({name: torch_tensor(f"9{i}", a, tail=b"N") for i, (name, a) in enumerate(arrays.items())})
    file = io.BytesIO()
    for value in (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}):
        file.write(pickle.dumps(value, protocol=2))
    file.write(state)
    file.write(pickle.dumps([f"9{i}" for i in range(len(arrays))], protocol=2))
    for array in arrays.values():
        file.write(struct.pack("<q", array.size) + array.tobytes())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(file.getvalue())
    return path


def varint(value: int) -> bytes:
    """A protobuf integer."""
    data = b""
    while value >= 0x80:
        data, value = data + bytes([value & 0x7F | 0x80]), value >> 7
    return data + bytes([value])


def paddle_tensor(array: np.ndarray, packed: bool = False, levels: tuple[bytes, ...] = ()) -> bytes:
    """A variable as fluid's save_vars writes it."""
    kinds = {"f4": 5, "f8": 6, "f2": 4, "i8": 3, "i4": 2, "u2": 22}
    description = b"\x08" + varint(kinds[array.dtype.str[1:]])
    sizes = [varint(size) for size in array.shape]
    if packed:
        description += b"\x12" + varint(len(b"".join(sizes))) + b"".join(sizes)
    else:
        description += b"".join(b"\x10" + size for size in sizes)
    detail = b"".join(struct.pack("<Q", len(level)) + level for level in levels)
    head = struct.pack("<IQ", 0, len(levels)) + detail + struct.pack("<Ii", 0, len(description))
    assert math.prod(array.shape) == array.size
    return head + description + array.tobytes()
