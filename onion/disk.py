"""Files that are whole or not there at all: written beside their final name, synced to the disk, then renamed.

And folders that one process at a time writes to.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_file(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file so that, whatever happens, the old one or the whole new one stands there.

    What a link points to is replaced, not the link.

    Args:
        path: the file; its folder exists.
        content: the bytes, or pieces of them one after the other.

    Raises:
        OSError: the disk refused; nothing is left half-written.
    """
    path = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)  # a name has at most 255 bytes
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in [content] if isinstance(content, bytes) else content:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())  # mkstemp makes files that only their owner can read
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and flush it to the disk.

    Raises:
        OSError: the disk refused.
    """
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush a folder's list of names to the disk, so that a rename outlives a power cut (POSIX; elsewhere nothing)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(folder: Path, wait: bool = False) -> Iterator[None]:
    """Keep other processes that ask for it out of a folder; the system lets go when this one ends, however it ends.

    POSIX only; elsewhere, and on a file system without locks, nobody is kept out.

    Args:
        folder: has to exist.
        wait: until the other process lets go, instead of raising. Default: no.

    Raises:
        BlockingIOError: another process has it.
    """
    if os.name != "posix":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise
        except OSError:  # no locks here
            pass
        yield
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
