"""What stands under a file's name and is no file, or has a name that is none: (path, content) -> path."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

Put = Callable[[Path, bytes], Path]


def pipe(path: Path, content: bytes) -> Path:
    """A pipe that nobody writes to."""
    os.mkfifo(path)
    return path


def folder(path: Path, content: bytes) -> Path:
    """A folder."""
    path.mkdir()
    return path


def zeros(path: Path, content: bytes) -> Path:
    """A link to the device that never ends."""
    path.symlink_to("/dev/zero")
    return path


def null(path: Path, content: bytes) -> Path:
    """A link to the device that holds nothing."""
    path.symlink_to("/dev/null")
    return path


def dangling(path: Path, content: bytes) -> Path:
    """A link to nothing."""
    path.symlink_to(path.with_name("nowhere"))
    return path


def loop(path: Path, content: bytes) -> Path:
    """A link to itself."""
    path.symlink_to(path)
    return path


def door(path: Path, content: bytes) -> Path:
    """A socket."""
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path has a hundred bytes at most
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)
    return path


def unreadable(path: Path, content: bytes) -> Path:
    """A file that nobody may read; the system's administrator may all the same."""
    path.write_bytes(content)
    path.chmod(0)
    return path


def absent(path: Path, content: bytes) -> Path:
    """Nothing."""
    return path


def below_a_file(path: Path, content: bytes) -> Path:
    """A path through a file."""
    path.write_bytes(content)
    return path / path.name


def long_name(path: Path, content: bytes) -> Path:
    """A name that no file system takes."""
    return path.with_name("x" * 300 + path.suffix)


def strange_name(path: Path, content: bytes) -> Path:
    """A file whose name moves a terminal, with a byte in it that is told with the name."""
    strange = path.with_name(f"a\x1b[2J\ufeff {path.name}")
    strange.write_bytes(content + b"\xff")
    return strange


def without_ending(path: Path, content: bytes) -> Path:
    """A good file whose name has no ending."""
    path.with_suffix("").write_bytes(content)
    return path.with_suffix("")


def another_ending(path: Path, content: bytes) -> Path:
    """A good file whose name has another ending, which may be that of another kind of table."""
    endings = [".tsv", ".csv", ".jsonl", ".txt", ".json"]
    other = path.with_suffix(endings[(endings.index(path.suffix) + 1) % len(endings)])
    other.write_bytes(content)
    return other


WAYS: tuple[Put, ...] = (
    pipe, folder, zeros, null, dangling, loop, door, unreadable, absent, below_a_file, long_name, strange_name,
    without_ending, another_ending,
)  # fmt: skip
