"""Files that want to run something, to lead elsewhere, or to fill the memory: what each loader is given.

Each payload of ``pickles``, ``yamls`` and ``arrays`` makes a folder, the witness, in a reader that trusts it; that the
payloads do work is a test of its own (test_loaders.py).
"""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np

from tests.models.foreign_files import named, number, text, torch_state, tuple_of

DEEP = 100_000
EXTENSION = 240
"""The number under which a reader may know a callable (PEP 307); test_loaders.py has one that does."""


def call(function: bytes, *arguments: bytes) -> bytes:
    """The opcodes that call a function."""
    return function + tuple_of(*arguments) + b"R"


def pickled_calls(witness: Path) -> dict[str, bytes]:
    """Opcodes that make the folder: by each opcode that calls, and by the gadgets that allow lists tend to admit."""
    path, mkdir, partial = text(str(witness)), named("os", "mkdir"), named("functools", "partial")
    code = text(f"__import__('os').mkdir({str(witness)!r})")
    object_ = named("builtins", "object")
    getattr_, import_ = named("builtins", "getattr"), named("builtins", "__import__")
    os_module = call(named("importlib", "import_module"), text("os"))
    getting = named("operator", "attrgetter")
    runstring = named("numpy.testing._private.utils", "runstring")
    state = pickle.dumps({}, protocol=4)[2:-1]
    trusted = b"\x80\x04" + call(mkdir, path) + b"."
    objects = npy_of_objects(trusted)
    return {
        "GLOBAL": call(mkdir, path),
        "GLOBAL posix": call(named("posix", "mkdir"), path),
        "STACK_GLOBAL": call(text("os") + text("mkdir") + b"\x93", path),
        "STACK_GLOBAL dotted": call(text("shutil") + text("os.mkdir") + b"\x93", path),
        "INST": b"(" + path + b"ios\nmkdir\n",
        "OBJ": b"(" + mkdir + path + b"o",
        "NEWOBJ": partial + tuple_of(mkdir, path) + b"\x81)R",
        "NEWOBJ_EX": partial + tuple_of(mkdir, path) + b"}\x92)R",
        "BUILD": named("types", "SimpleNamespace") + b")\x81}" + text("__setstate__") + mkdir + b"sb" + path + b"b",
        "EXT1": b"\x82" + bytes([EXTENSION]) + tuple_of(path) + b"R",
        "memo": mkdir + b"q\x070h\x07" + tuple_of(path) + b"R",
        "os.system": call(named("os", "system"), text(f"mkdir {witness}")),
        "posix.system": call(named("posix", "system"), text(f"mkdir {witness}")),
        "subprocess.call": call(named("subprocess", "call"), tuple_of(text("mkdir"), path)),
        "subprocess.Popen": call(named("subprocess", "Popen"), tuple_of(text("mkdir"), path)),
        "builtins.eval": call(named("builtins", "eval"), code),
        "builtins.exec": call(named("builtins", "exec"), code),
        "__import__": call(call(getattr_, call(import_, text("os")), text("mkdir")), path),
        "importlib": call(call(getattr_, os_module, text("mkdir")), path),
        "operator.attrgetter": call(call(call(getting, text("mkdir")), os_module), path),
        "operator.methodcaller": call(call(named("operator", "methodcaller"), text("mkdir"), path), os_module),
        "functools.partial": call(call(partial, mkdir, path)),
        "functools.reduce": call(named("functools", "reduce"), mkdir, tuple_of(path, number(0o755))),
        "map": call(named("builtins", "list"), call(named("builtins", "map"), mkdir, tuple_of(path))),
        "runpy": call(named("runpy", "_run_code"), code, state),
        "timeit": call(named("timeit", "timeit"), code, text("pass"), named("time", "perf_counter"), number(1)),
        "numpy's runstring": call(runstring, code, state),
        "numpy.load": call(named("numpy", "load"), call(named("io", "BytesIO"), raw(objects)), b"N", b"\x88"),
        "pickle.loads": call(named("pickle", "loads"), raw(trusted)),
        "in an array of objects": array_of_objects(call(mkdir, path)),
        "in a copyreg._reconstructor": call(named("copyreg", "_reconstructor"), object_, object_, call(mkdir, path)),
    }  # fmt: skip


def odd_pickles(witness: Path) -> dict[str, bytes]:
    """Opcodes that do nothing in a plain unpickler, and might in one that knows persistent ids or odd classes."""
    path, mkdir = text(str(witness)), named("os", "mkdir")
    reconstruct = named("numpy.core.multiarray", "_reconstruct")
    return {
        "PERSID": f"P{witness}\n".encode(),
        "BINPERSID": path + b"Q",
        "a storage of a callable": tuple_of(text("storage"), mkdir, path, text("cpu"), number(1)) + b"Q",
        "an array of an odd class": call(reconstruct, mkdir, tuple_of(path), raw(b"b")),
        "a tensor made by a callable": call(named("torch._utils", "_rebuild_tensor_v2"), call(mkdir, path)),
        "a tensor's own loader": call(named("torch", "load"), path),
        "torch.hub": call(named("torch.hub", "load"), path, text("x")),
    }  # fmt: skip


def raw(data: bytes) -> bytes:
    """The opcode that pushes bytes."""
    return b"B" + struct.pack("<I", len(data)) + data


def array_of_objects(inner: bytes) -> bytes:
    """The opcodes that push a numpy array of one object."""
    multiarray = "numpy.core.multiarray" if np.__version__ < "2" else "numpy._core.multiarray"
    dtype = call(named("numpy", "dtype"), text("O8"), b"\x89", b"\x88")
    empty = call(named(multiarray, "_reconstruct"), named("numpy", "ndarray"), tuple_of(number(0)), raw(b"b"))
    return empty + tuple_of(number(1), tuple_of(number(1)), dtype, b"\x89", b"](" + inner + b"e") + b"b"


def npy_of_objects(pickled: bytes) -> bytes:
    """A .npy file whose one value is a pickle."""
    header = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + pickled


def npy_of(header: str, data: bytes = b"") -> bytes:
    """A .npy file with a header of one's choice."""
    padded = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded + data


def pickles(witness: Path) -> dict[str, bytes]:
    """Whole pickles: each call alone, and as a value of a dict of parameters."""
    found = {}
    for name, code in {**pickled_calls(witness), **odd_pickles(witness)}.items():
        found[f"pickle, {name}"] = b"\x80\x04" + code + b"."
        found[f"pickle of parameters, {name}"] = b"\x80\x02}" + text("embeddings.layer_norm.weight") + code + b"s."
    return found


def zips(witness: Path) -> dict[str, bytes]:
    """PyTorch's zip files with each of the calls, and archives whose members want to be written elsewhere."""
    found = {
        f"torch zip, {name}": zipped({"archive/data.pkl": torch_state({"w": code})})
        for name, code in {**pickled_calls(witness), **odd_pickles(witness)}.items()
    }
    for name in (str(witness), f"../{witness.name}", f"a/../../{witness.name}"):
        found[f"zip with {name}"] = zipped({"archive/data.pkl": torch_state({}), name: b"x"})
    found["zip bomb"] = zipped({"archive/data.pkl": bytes(1 << 20)}, zipfile.ZIP_DEFLATED)
    found["zip of an unknown method"] = zipped({"archive/data.pkl": b"x"}).replace(
        b"PK\x01\x02\x14\x03\x14\0\0\0\0\0", b"PK\x01\x02\x14\x03\x14\0\0\0\x63\0"
    )
    found["encrypted zip"] = zipped({"archive/data.pkl": b"x"}).replace(
        b"PK\x01\x02\x14\x03\x14\0\0\0", b"PK\x01\x02\x14\x03\x14\0\x01\0"
    )
    return found


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def tars(witness: Path) -> dict[str, bytes]:
    """Archives that would write to the witness's place: by their names, through links, or as something else."""
    up, inside = f"../{witness.name}", f"link/{witness.name}"
    links = {"symlink": tarfile.SYMTYPE, "hard link": tarfile.LNKTYPE}
    found = {
        "tar, absolute": tarred((str(witness), tarfile.REGTYPE, "")),
        "tar, upwards": tarred((up, tarfile.REGTYPE, "")),
        "tar, a folder upwards": tarred((up, tarfile.DIRTYPE, "")),
        "tar, a device": tarred((up, tarfile.CHRTYPE, "")),
        "tar, a pipe": tarred((up, tarfile.FIFOTYPE, "")),
    }
    for name, kind in links.items():
        found[f"tar, through a {name}"] = tarred(("link", kind, str(witness.parent)), (inside, tarfile.REGTYPE, ""))
        found[f"tar, a {name}"] = tarred((up, kind, "/etc/passwd"))
    return found


def tarred(*members: tuple[str, bytes, str]) -> bytes:
    """A .tar.gz of members of one byte: name, kind, where a link leads."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, kind, link in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode, info.size = kind, link, 0o4777, int(kind == tarfile.REGTYPE)
            archive.addfile(info, io.BytesIO(b"x"))
    return file.getvalue()


def arrays(witness: Path) -> dict[str, bytes]:
    """Files of arrays: of pickled objects, or with headers that are code."""
    pickled = b"\x80\x04" + call(named("os", "mkdir"), text(str(witness))) + b"."
    file = io.BytesIO()
    np.savez(file, ids=np.zeros(3))
    return {
        "npy of objects": npy_of_objects(b"\x80\x04" + array_of_objects(pickled[2:-1]) + b"."),
        "npy with code in its header": npy_of(f"__import__('os').mkdir({str(witness)!r})"),
        "npy with code in its shape": npy_of(
            f"{{'descr': '<i4', 'fortran_order': False, 'shape': (__import__('os').mkdir({str(witness)[-30:]!r}),)}}"
        ),
        "npz": file.getvalue(),
    }


def huge_arrays() -> dict[str, bytes]:
    """Files of arrays that tell of more than any memory holds."""
    plain, far = '{"w":{"dtype":"F32","shape":', 4611686018427387904
    dense = struct.pack("<IQ", 0, 0) + struct.pack("<Ii", 0, 12)
    return {
        "npy of a pebibyte": npy_of(f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({1 << 48},), }}"),
        "npy of a pebibyte, and a number": npy_of(
            f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({1 << 48},), }}", bytes(8)
        ),
        "safetensors, a header of exabytes": struct.pack("<Q", 1 << 62) + b"{}",
        "safetensors, a header of -1": struct.pack("<Q", (1 << 64) - 1) + b"{}",
        "safetensors, no header": bytes(8),
        "safetensors, offsets far away": tensors(f'{plain}[1],"data_offsets":[0,{far}]}}}}'),
        "safetensors, offsets backwards": tensors(f'{plain}[1],"data_offsets":[8,4]}}}}'),
        "safetensors, negative offsets": tensors(f'{plain}[1],"data_offsets":[-4,0]}}}}'),
        "safetensors, a shape that overflows": tensors(
            f'{plain}[4294967296,4294967296,4],"data_offsets":[0,16]}}}}'
        ),
        "safetensors, two names for the same bytes": tensors(
            f'{plain}[4],"data_offsets":[0,16]}},{plain[1:].replace("w", "v")}[4],"data_offsets":[0,16]}}}}'
        ),
        "safetensors, an unknown type": tensors('{"w":{"dtype":"OBJ","shape":[4],"data_offsets":[0,16]}}'),
        "safetensors, deep JSON": tensors('{"w":' * DEEP),
        "Paddle tensor of exabytes": dense + b"\x08\x05\x10" + b"\xff" * 8 + b"\x01",
        "Paddle tensor of many levels": struct.pack("<IQ", 0, (1 << 64) - 1) + bytes(16),
    }  # fmt: skip


def tensors(header: str) -> bytes:
    """A safetensors file with a header of one's choice and 16 bytes."""
    return struct.pack("<Q", len(header)) + header.encode() + bytes(16)


def yamls(witness: Path) -> dict[str, bytes]:
    """YAML whose tags name Python's functions and classes; each works in PyYAML's unsafe loader."""
    code = f"__import__('os').mkdir({str(witness)!r})"
    texts = {
        "apply os.mkdir": f"task: !!python/object/apply:os.mkdir [{witness}]",
        "apply os.system": f"task: !!python/object/apply:os.system [mkdir {witness}]",
        "apply subprocess.call": f"task: !!python/object/apply:subprocess.call [[mkdir, {witness}]]",
        "apply eval": f'task: !!python/object/apply:eval ["{code}"]',
        "new partial": f"task: !!python/object/apply:functools.reduce [!!python/name:os.mkdir '', [{witness}, 493]]",
        "as the whole document": f"!!python/object/apply:os.mkdir [{witness}]",
        "as a key": f"? !!python/object/apply:os.mkdir [{witness}]\n: 1",
        "by the tag in full": f"task: !<tag:yaml.org,2002:python/object/apply:os.mkdir> [{witness}]",
    }
    return {f"YAML, {name}": content.encode() for name, content in texts.items()}


def bombs() -> dict[str, bytes]:
    """Texts that are deeper, longer or larger than a reader expects."""
    lists = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    return {
        "brackets": b"[" * DEEP,
        "whole brackets": b"[" * DEEP + b"]" * DEEP,
        "objects in objects": b'{"a":' * DEEP,
        "a number of thousands of digits": b"9" * 5000,
        "a number of thousands of digits by name": b'{"format": ' + b"9" * 5000 + b', "step": 1, "files": {}}',
        "infinity": b'{"format": 1, "step": 1e999, "files": {}, "done": 1e999, "vocab_size": 1e999}',
        "not a number": b'{"format": 1, "step": NaN, "files": {}, "done": NaN, "vocab_size": NaN}',
        "half a surrogate pair": b'{"\\ud800": "\\udfff"}',
        "no UTF-8": b"\xff\xfe\x00",
        "NUL bytes": bytes(100),
        "nothing": b"",
        "null": b"null",
        "YAML, aliases of aliases": f"a0: &a0 [x]\n{lists}passes: *a11".encode(),
        "YAML, an alias of itself": b"passes: &a [*a]",
    }


def payloads(witness: Path) -> dict[str, bytes]:
    """All of them, by what they are."""
    running = {**pickles(witness), **zips(witness), **tars(witness), **arrays(witness), **yamls(witness)}
    return {**running, **huge_arrays(), **bombs()}
