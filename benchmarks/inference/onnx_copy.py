"""ONNX Runtime as on a processor without AVX-512: a copy of its library, changed where it asks the processor.

A program may use AVX-512 only if the system keeps those registers, which XGETBV tells. In the copy that instruction,
three bytes, is replaced by three that answer 7: only the registers of SSE and AVX are kept.
"""

from __future__ import annotations

import atexit
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp

ASKED = bytes.fromhex("31c9 0f01d0")
"""``xor ecx, ecx; xgetbv``: by itself, XGETBV's three bytes also stand inside other instructions."""

ANSWERED = bytes.fromhex("31c9 6a0758")
"""``xor ecx, ecx; push 7; pop rax``."""


def changed(code: bytes) -> bytes:
    """Return machine code in which the system keeps no registers of AVX-512.

    Raises:
        ValueError: it does not ask in the known way, so it would not be limited.
    """
    if ASKED not in code:
        raise ValueError("this version of ONNX Runtime asks the processor in another way; it cannot be limited")
    return code.replace(ASKED, ANSWERED)


def copy_package(source: Path, folder: Path) -> None:
    """Copy a package and change its libraries; one that has none to change is refused, as ``changed`` does."""
    shutil.copytree(source, folder / source.name)
    for library in (folder / source.name / "capi").glob("*_state*.so"):
        library.write_bytes(changed(library.read_bytes()))


def import_copy() -> None:
    found = find_spec("onnxruntime")
    assert found is not None, "onnxruntime is not installed"
    assert found.origin is not None
    folder = Path(mkdtemp(prefix="onnxruntime-avx2-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy_package(Path(found.origin).parent, folder)
    sys.path.insert(0, str(folder))
