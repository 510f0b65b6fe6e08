"""Files that are whole or not there at all: written beside their final name, synced to the disk, then renamed.

All of it asks one object, `Files`, for what only the system can do,
so that a test can let any byte, sync, rename or removal fail.
"""

from __future__ import annotations

import errno
import glob
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import IO

from onion.checkpointing.lock import locked, take_lock

PARTIAL = ".partial"
"""The end of the name of whatever is not whole yet."""


class Files:
    """What onion asks of the system where files are changed; each method raises OSError where that refuses."""

    def write(self, file: IO[bytes], content: bytes) -> None:
        """Write bytes to an open file."""
        file.write(content)

    def sync(self, handle: int) -> None:
        """Bring what was written to a file, or a folder's list of names, to the disk."""
        os.fsync(handle)

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file or a folder; a file that has the name already is replaced."""
        source.replace(target)

    def remove(self, folder: Path) -> None:
        """Remove a folder and all that is in it; of a link only the link."""
        if folder.is_symlink():
            folder.unlink()
        else:
            shutil.rmtree(folder)


_files = Files()


@contextmanager
def through(files: Files) -> Iterator[None]:
    """Ask another object instead, in every thread, until this is left; for tests."""
    global _files
    before, _files = _files, files
    try:
        yield
    finally:
        _files = before


def replace_file(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file so that at any time either the old or the complete new file exists.

    The target of a link is replaced, not the link. What a killed process left half-written of the file is removed.

    Args:
        path: the file; its folder exists.
        content: the bytes, or pieces of them one after the other.
    """
    path = Path(os.path.realpath(path))
    remove_abandoned(path.parent, _beginning(path))
    handle, temporary = _temporary(path)
    ours = os.dup(handle)  # the lock lasts until this is closed too
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in [content] if isinstance(content, bytes) else content:
                write(file, piece)
            sync(file)
        temporary.chmod(0o666 & ~_umask())  # mkstemp makes files that only their owner can read
        rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(ours)
    sync_folder(path.parent)


def _temporary(path: Path) -> tuple[int, Path]:
    """Return a new file beside a path, open and locked."""
    while True:
        # By its end the next start of a run knows what a kill has left (checkpoint.sweep).
        handle, name = tempfile.mkstemp(prefix=_beginning(path), suffix=PARTIAL, dir=path.parent)
        take_lock(handle, wait=True)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # another process took it for abandoned before it was locked


def remove_abandoned(folder: Path, beginning: str = ".") -> None:
    """Remove unfinished files, of these beginnings, whose process has ended; those of a living one are locked."""
    for rest in folder.glob(f"{glob.escape(beginning)}*{PARTIAL}"):
        if rest.is_file():
            with suppress(OSError), locked(rest):
                rest.unlink()


def _beginning(path: Path) -> str:
    return f".{path.name[:40]}."  # a name has at most 255 bytes


def read_file(path: Path) -> bytes:
    """Read a whole file; OSError if it is not a plain one (a pipe, a device), which is not waited for."""
    with FileIO(path, opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "Not a plain file")
        return file.readall()


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # else opening a pipe without a writer would block


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and flush it to the disk."""
    with path.open("wb") as file:
        write(file, content)
        sync(file)


def write(file: IO[bytes], content: bytes) -> None:
    """Write bytes to an open file; after an OSError a part of them may have been written."""
    _files.write(file, content)


def sync(file: IO[bytes]) -> None:
    """Flush an open file to the disk."""
    file.flush()
    _files.sync(file.fileno())


def rename(source: Path, target: Path) -> None:
    """Rename a file or a folder; an existing file of that name is replaced, unless the system raises OSError."""
    _files.rename(source, target)


def remove_tree(folder: Path) -> None:
    """Remove a folder with its content; after an OSError a part of it may be gone."""
    _files.remove(folder)


def sync_folder(folder: Path) -> None:
    """Flush a folder's list of names to the disk, so that a rename outlives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        _files.sync(handle)
    finally:
        os.close(handle)


def sync_files(folder: Path) -> None:
    """Flush all files of a folder and of folders in it, and their lists of names: for what other code has written."""
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            sync_folder(path)
        elif path.is_file():
            with path.open("rb") as file:
                _files.sync(file.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
