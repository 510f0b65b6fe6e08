"""Names for content: what decides about features, as SHA-256 in 64 hexadecimal digits."""

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

from onion.data.opening import opened, refuse_pipe
from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.tasks.task import Task

PIECE = 1 << 20
REST = 2_000_000_000
"""Nanoseconds that a file has to be left alone before its digest is remembered: clocks of file systems are coarse."""

SHARED_VERSION = 1
"""Of what the features of all tasks are made by: readers of rows, tokenizers. To be raised where they give others."""

LANGUAGE = ("builtins", "abc", "typing")
"""Modules of classes that every task has for a base."""

_known: dict[tuple[int, ...], str] = {}


def digest_of_file(path: str | Path) -> str:
    """Return that of what is in a file; a file that nobody has written to since is not read a second time.

    Raises:
        DataError: it cannot be read, or no second time.
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
    """What is another after whatever was written to a file."""
    now = os.fstat(file.fileno())
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def _rests(file: BinaryIO) -> bool:
    """Whether it is so long unchanged that the next change gives it another time."""
    return os.fstat(file.fileno()).st_mtime_ns < time.time_ns() - REST


def ending_of(path: str | Path) -> str:
    """Return the ending of a file's name, which says how what is in it is read; the rest of its name says nothing."""
    return Path(path).suffix.lower()


def file_record(path: str | Path) -> dict[str, str]:
    """Return what says how a file is read, and what is in it."""
    return {"file": digest_of_file(path), "ending": ending_of(path)}


def digest_of_tokenizer(tokenizer: Tokenizer) -> str:
    """Return that of all that a tokenizer saves of itself."""
    found = hashlib.sha256()
    for name, content in sorted(tokenizer.files().items()):
        found.update(name.encode() + b"\0" + content)
    return found.hexdigest()


def digest_of_values(values: Mapping[str, Any]) -> str:
    """Return that of JSON values by name, in whatever order."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def code_of(task: Task) -> dict[str, Any]:
    """Return what says by which code a task's features are made: its class, versions, and whatever code is not onion's.

    Code of onion's counts by the versions alone, so that a change that changes no features costs nobody a cache.

    Raises:
        DataError: a class of somebody else's stands in no file.
    """
    kind = type(task)
    versions = {"version": kind.features_version, "shared_version": SHARED_VERSION}
    return {"class": f"{kind.__module__}.{kind.__qualname__}", **versions, "code": digest_of_own_code(kind)}


def digest_of_own_code(kind: type[Task]) -> str:
    """Return that of the files, comments left out, of those of a task's classes that are not onion's.

    Raises:
        DataError: one of them stands in no file.
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
            f"{kind.__qualname__}: this class stands in no file, and features are kept by the code that makes them; "
            f"define it in a module (.py)"
        )
    return file
