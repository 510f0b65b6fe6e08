"""Whether a file or a folder is there, and an error where the system will not say. Without Paddle."""

from __future__ import annotations

import stat
from pathlib import Path

from onion.errors import WeightsError


def is_file(path: Path) -> bool:
    """Whether this is a file, or a link to one.

    Raises:
        WeightsError: nobody can say: a folder above it may not be searched, the name is too long, and the like.
    """
    return stat.S_ISREG(_mode(path))


def is_folder(path: Path) -> bool:
    """Whether this is a folder, or a link to one; raises as :func:`is_file`."""
    return stat.S_ISDIR(_mode(path))


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise WeightsError(f"{path}: cannot read: {error.strerror}") from error
    except ValueError as error:  # a zero byte in the name
        raise WeightsError(f"{str(path)!r}: no name of a file: {error}") from error
