"""Opening data files, and pipes that another process writes to."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from onion.errors import DataError

HANDLES = Path("/dev/fd")
"""Where Linux and macOS list what a process holds open."""

TO_A_FILE = "write what it gives to a file, and name that"


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read bytes; what goes wrong with it is said as for `onion.data.read_rows`.

    Raises:
        DataError: The file cannot be read; or it is neither a file nor a pipe or terminal that this process was started
            with, and might never end or never begin.
    """
    try:
        _refuse_endless(path)
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file; check the path") from None
    except IsADirectoryError:
        raise DataError(f"{path}: this is a folder; name a file in it") from None
    except PermissionError:
        raise DataError(f"{path}: no permission to read it; check the owner and mode of the file") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        raise DataError(f"{path}: cannot be read ({error}); check the disk and the path") from error


def is_fed(path: Path) -> bool:
    """Whether this is a pipe or a terminal that this process holds open already, such as ``/dev/stdin``."""
    with suppress(OSError, ValueError):
        there = path.stat()
        if stat.S_ISFIFO(there.st_mode) or stat.S_ISCHR(there.st_mode):
            return any(_reads(int(handle.name), there) for handle in HANDLES.iterdir())
    return False


def refuse_pipe(path: Path) -> None:
    """Raise DataError for what can be read once only; a missing file is left to `opened`."""
    if is_fed(path):
        raise DataError(f"{path}: this is a pipe or a terminal, and it has to be read more than once; {TO_A_FILE}")


def _refuse_endless(path: Path) -> None:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    if not (stat.S_ISREG(mode) or is_fed(path)):
        kind = "pipe" if stat.S_ISFIFO(mode) else "device or a socket"
        raise DataError(f"{path}: this is a {kind}, which may never end; {TO_A_FILE}")


def _reads(handle: int, there: os.stat_result) -> bool:
    """Whether a handle reads from that pipe or terminal."""
    with suppress(OSError):  # the handle that listed the handles
        same = os.path.samestat(os.fstat(handle), there)
        ends = stat.S_ISFIFO(there.st_mode) or os.isatty(handle)
        return same and ends and fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE != os.O_WRONLY
    return False
