"""Whether a file or a folder exists, and errors that name the file. Without Paddle."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from onion.errors import WeightsError


def is_file(path: Path) -> bool:
    """Return whether this is a file, or a link to one.

    Raises:
        WeightsError: the system does not tell: a parent folder may not be searched, the name is too long, etc.
    """
    return stat.S_ISREG(_mode(path))


def is_folder(path: Path) -> bool:
    """Return whether this is a folder, or a link to one; raises as :func:`is_file`."""
    return stat.S_ISDIR(_mode(path))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn the operating system's errors in the body into one that names the file.

    Raises:
        WeightsError: the file or folder cannot be read.
    """
    try:
        yield
    except OSError as error:
        raise WeightsError(f"{path}: cannot read: {error.strerror or error}") from error


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the name of a file before the message of a WeightsError raised in the body.

    Raises:
        WeightsError: as in the body.
    """
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
