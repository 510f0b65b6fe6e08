"""Digests of everything that features depend on: SHA-256, 64 hexadecimal digits."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from onion.data.opening import opened, refuse_pipe
from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.task import Task

PIECE = 1 << 20
REST = 2_000_000_000
"""Nanoseconds a file must be unchanged before its digest is remembered, since clocks of file systems are coarse."""

SHARED_VERSION = 1
"""Version of what all tasks share, row readers and tokenizers. Raise it when features change because of them."""

LANGUAGE = ("builtins", "abc", "typing")
"""Modules of the base classes of every task."""

_known: dict[tuple[int, ...], str] = {}


def digest_of_file(path: str | Path) -> str:
    """Return the digest of a file; unchanged files are read once per process.

    Raises:
        DataError: it cannot be read, or only once (a pipe).
    """
    refuse_pipe(Path(path))
    with opened(Path(path)) as file:
        stamp, rests = _stamp(file), _rests(file)
        if stamp in _known:
            return _known[stamp]
        found = _sum(file)
    if rests:
        _known[stamp] = found
    return found


def _sum(file: BinaryIO) -> str:
    found = hashlib.sha256()
    while piece := file.read(PIECE):
        found.update(piece)
    return found.hexdigest()


def _stamp(file: BinaryIO) -> tuple[int, ...]:
    """Return a value that differs after every write to the file."""
    now = os.fstat(file.fileno())
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def _rests(file: BinaryIO) -> bool:
    """Tell whether the file has been unchanged long enough for the next write to change its stamp."""
    return os.fstat(file.fileno()).st_mtime_ns < time.time_ns() - REST


def ending_of(path: str | Path) -> str:
    """Return the extension of a file, which determines how it is read; the rest of the name does not matter."""
    return Path(path).suffix.lower()


def file_record(path: str | Path) -> dict[str, str]:
    """Return the digest and the extension of a file."""
    return {"file": digest_of_file(path), "ending": ending_of(path)}


def digest_of_tokenizer(tokenizer: Tokenizer) -> str:
    """Return the digest of all files of a tokenizer."""
    found = hashlib.sha256()
    for name, content in sorted(tokenizer.files().items()):
        found.update(name.encode() + b"\0" + content)
    return found.hexdigest()


def digest_of_arrays(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the digest of arrays and their names, in whatever order they come."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(name.encode())
        found.update(np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()


def digest_of_values(values: Mapping[str, Any]) -> str:
    """Return the digest of named JSON values, in any order."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def code_of(task: Task) -> dict[str, Any]:
    """Return what identifies the code of a task: its class, the versions, and a digest of code outside onion.

    Code of onion is identified by its versions only, so changes that do not affect features keep the cache valid.

    Raises:
        DataError: the source of a class outside onion cannot be found.
    """
    kind = type(task)
    versions = {"version": kind.features_version, "shared_version": SHARED_VERSION}
    return {"class": f"{kind.__module__}.{kind.__qualname__}", **versions, "code": digest_of_own_code(kind)}


def digest_of_own_code(kind: type[Task]) -> str:
    """Return the digest of the source files, without comments, of a task's classes that are not onion's.

    Raises:
        DataError: the source of a class cannot be found.
    """
    files = {_file_of(each) for each in kind.__mro__ if each.__module__.split(".")[0] not in ("onion", *LANGUAGE)}
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(ast.dump(ast.parse(file.read_bytes())).encode())
    return found.hexdigest()


def _file_of(kind: type) -> Path:
    try:
        file = Path(inspect.getsourcefile(kind) or "")
    except (TypeError, OSError):
        file = Path()
    if not file.is_file():
        raise DataError(
            f"{kind.__qualname__}: there is no source file of this class, and cached features are identified by the "
            f"code that makes them; define it in a module (.py)"
        )
    return file
