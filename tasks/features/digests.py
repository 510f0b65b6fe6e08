"""Names for content: what decides about features, as SHA-256 in 64 hexadecimal digits."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from onion.data.opening import opened, refuse_pipe
from onion.models import splitting
from onion.models.tokenizer import Tokenizer
from onion.tasks.task import Task

PIECE = 1 << 20
REST = 2_000_000_000
"""Nanoseconds that a file has to be left alone before its digest is remembered: clocks of file systems are coarse."""

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


def digest_of_tokenizer(tokenizer: Tokenizer) -> str:
    """Return that of all that a tokenizer saves of itself."""
    found = hashlib.sha256()
    for name, content in sorted(tokenizer.files().items()):
        found.update(name.encode() + b"\0" + content)
    return found.hexdigest()


def digest_of_values(values: Mapping[str, Any]) -> str:
    """Return that of JSON values by name, in whatever order."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def code_of(task: Task) -> dict[str, str]:
    """Return the name of a task's class and the digest of its code."""
    return {"class": f"{type(task).__module__}.{type(task).__qualname__}", "code": digest_of_code(type(task))}


def digest_of_code(kind: type[Task]) -> str:
    """Return that of the files that a task's features are made by: its classes', and all of onion's tasks."""
    files = {inspect.getsourcefile(each) for each in kind.__mro__ if each.__module__ != "builtins"}
    folders = (Path(__file__).parents[1], Path(splitting.__file__).parent)
    files |= {str(path) for folder in folders for path in folder.rglob("*.py")}
    found = hashlib.sha256()
    for name in sorted(filter(None, files)):
        found.update(Path(name).read_bytes())
    return found.hexdigest()
