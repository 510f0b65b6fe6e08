"""Whether a file or a folder exists, and errors that name the file. Without Paddle."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from onion.errors import WeightsError


def is_file(path: Path) -> bool:
    """Return whether this is a file, or a link to one; raise a WeightsError if the system does not tell."""
    return stat.S_ISREG(_mode(path))


def is_folder(path: Path) -> bool:
    """Return whether this is a folder, or a link to one; raise a WeightsError if the system does not tell."""
    return stat.S_ISDIR(_mode(path))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn the system's errors in the body into a WeightsError that names the file."""
    try:
        yield
    except OSError as error:
        raise WeightsError(f"{path}: cannot read: {error.strerror or error}") from error


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the name of a file before the message of a WeightsError in the body."""
    try:
        yield
    except WeightsError as error:
        raise WeightsError(f"{path}: {error}") from error


def _mode(path: Path) -> int:
    try:
        with reading(path), suppress(FileNotFoundError, NotADirectoryError):
            return path.stat().st_mode
        return 0
    except ValueError as error:  # a zero byte in the name
        raise WeightsError(f"{str(path)!r}: not a file name: {error}") from error
