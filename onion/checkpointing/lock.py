"""Locks between processes: of any file or folder (:func:`locked`), and of a run's folder (:func:`exclusive_lock`).

The system holds a lock (``flock``) and releases it when the process ends, however it ends. The package filelock would
replace that one call; the rest is what a run's folder needs. One run at a time writes to it, and the error of a second
one names the owner: the file ``.lock`` in the folder has it, for people and for file systems without locks.

A lock goes with the last copy of its open file, and a forked child is born with one. So it closes that first of all: a
worker that outlives its killed run does not hold the lock.

Within the process the folder is its run's until the last of it has left: a thread that writes on while its run was
interrupted is in there too, and the next run waits for it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from io import FileIO
from pathlib import Path
from threading import RLock, Thread, current_thread
from typing import Any

from onion.errors import CheckpointError

LOCK = ".lock"

log = logging.getLogger("onion")


class _Held:
    """A folder that this process holds for a run.

    Attributes:
        run: whose it is.
        inside: each entry, and its thread if that may outlast the run.
    """

    def __init__(self, place: str, run: object) -> None:
        self.run = run
        self.inside: dict[object, Thread | None] = {}
        self._path = Path(place) / LOCK
        self._file: FileIO | None = None

    def take(self) -> None:
        """Take the lock, again if the folder was deleted and recreated, or the lock removed."""
        if self._file is not None and self._file.closed:  # an interrupt has cut the letting go off
            self._file = None
        if self._file is not None and _still_there(self._path, self._file.fileno()):
            return
        if self._file is not None:
            log.warning("%s was removed while the run was at work there, and is made again", self._path)
        self.release()
        while not self._took():
            pass  # its owner removed it between our opening and locking it

    def _took(self) -> bool:
        """Take the lock and write the owner into it; tell whether it is still the one in the folder."""
        file = _opened(self._path)
        try:
            has_locks = take_lock(file.fileno())
            if not has_locks and (owner := _owner(self._path)) and not _gone(owner):  # the owner's name has to do
                raise BlockingIOError
            if _still_there(self._path, file.fileno()):
                self._file = file
                with suppress(OSError) if has_locks else nullcontext():  # a full disk: it holds without the name
                    _sign(self._path, file.fileno())
        finally:
            if self._file is not file:
                file.close()
        return self._file is file

    def release(self) -> None:
        """Let go of the lock, and remove its file, where it is still ours; it does no harm to do so twice."""
        if self._file is not None and not self._file.closed:
            if _still_there(self._path, self._file.fileno()):
                with suppress(OSError):
                    self._path.unlink()  # before the lock goes, so that no new lock of another process is removed
            self._file.close()

    def forget(self) -> None:
        """Close the file, in a forked child. To close a copy does not unlock."""
        if self._file is not None:
            self._file.close()


_held: dict[str, _Held] = {}
_guard = RLock()


@contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[None]:
    """Lock a folder or a file, at most until this process ends; without effect on a file system without locks.

    Args:
        path: has to exist.
        wait: for another process that has it, instead of raising BlockingIOError. Default: no.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        take_lock(handle, wait)
        yield
    finally:
        os.close(handle)


def take_lock(handle: int, wait: bool = False) -> bool:
    """Lock an open file or folder until its last copy is closed; return False on a file system without locks.

    Raises:
        BlockingIOError: another process has it, and ``wait`` is false.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


@contextmanager
def exclusive_lock(folder: Path, run: object, lingers: bool = False) -> Iterator[None]:
    """Keep every other run out of a folder, also a child that is forked inside.

    Args:
        folder: has to exist.
        run: whose the folder is; it may enter again, in this process, and takes a folder again that was deleted and
            recreated in the meantime.
        lingers: whether this is a thread's work, which may continue after its run was interrupted: then the next run in
            this process waits for it. Default: no, the next run is refused.

    Raises:
        CheckpointError: another run has it, and the message names it; or the lock cannot be written.
    """
    place, entry = os.path.realpath(folder), object()
    try:
        try:
            while (last := _enter(folder, place, run, entry, lingers)) is not None:
                last.join()
            yield
        finally:
            _leave(place, entry)
    finally:
        _leave(place, entry)  # once more, for where an interrupt (Ctrl-C) has cut the first one off


def _enter(folder: Path, place: str, run: object, entry: object, lingers: bool) -> Thread | None:
    """Get into a folder; or return a thread that has to end first."""
    _free_guard()
    with _guard:
        held = _held.get(place)
        if held is None or not held.inside:
            held = _held[place] = held or _Held(place, run)
            held.run = run
        elif held.run is not run:
            *_, last = held.inside.values()
            if None in held.inside.values():
                raise _refused(folder, "another run of this process")
            return last
        held.inside[entry] = current_thread() if lingers else None
        try:
            held.take()
        except BlockingIOError:
            raise _refused_by_owner(folder, _owner(Path(place) / LOCK)) from None
        except OSError as error:
            raise CheckpointError(f"cannot write {folder / LOCK}: {error.strerror}.") from error
    return None


def _leave(place: str, entry: object) -> None:
    """Get out of a folder, if that was not done; the last one lets go of it."""
    _free_guard()
    held = _held.get(place)
    if held is None or (held.inside and entry not in held.inside):
        return
    with _guard:
        held.inside.pop(entry, None)
        if not held.inside:
            held.release()
            if _held.get(place) is held:
                del _held[place]


def _free_guard() -> None:
    """Let go of the guard where an interrupt came just before this thread did; threads would wait for it for ever."""
    with suppress(RuntimeError):
        while True:
            _guard.release()  # an error where it is not this thread's


def _forget() -> None:
    """Keep nothing of the parent's, in a forked child."""
    global _guard
    _guard = RLock()  # which another thread of the parent may have held
    for held in tuple(_held.values()):
        held.forget()
    _held.clear()


os.register_at_fork(after_in_child=_forget)


def _opened(path: Path) -> FileIO:
    """Open the file of a lock, creating it if necessary; only a plain file with a single name may be written to."""
    file = FileIO(path, "r+", opener=_plainly)
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        file.close()
        raise _strange()
    return file


def _plainly(path: str, flags: int) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise (_strange() if error.errno == errno.ELOOP else error) from None


def _strange() -> OSError:
    return OSError(errno.EINVAL, "what stands there is a link, a pipe or a device, and no lock of onion; remove it")


def _still_there(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except OSError:
        return False


def _sign(path: Path, handle: int) -> None:
    """Write who we are; say whose rest this was."""
    if before := _owner(path):
        log.debug("took %s over from %s, which is gone", path.parent, _told(before))
    since = f"{datetime.now():%Y-%m-%d %H:%M:%S}"
    owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": since, "command": " ".join(sys.argv)[:500]}
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(owner).encode(), 0)


def _gone(owner: dict[str, Any]) -> bool:
    """Whether the owner was a process of this machine, and is no more."""
    if owner.get("host") != socket.gethostname():
        return False
    try:
        os.kill(owner.get("pid"), 0)  # type: ignore[arg-type]  # a file can say anything
    except PermissionError:  # another user's
        return False
    except (ProcessLookupError, OverflowError, TypeError):
        return True
    return False


def _owner(path: Path) -> dict[str, Any]:
    """Return what the lock says of its owner; nothing if it says nothing."""
    try:
        owner = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return owner if isinstance(owner, dict) else {}


def _told(owner: dict[str, Any]) -> str:
    if not owner:
        return "another process"
    return "process {pid} on {host}, since {since} ({command})".format_map(
        {name: owner.get(name, "?") for name in ("pid", "host", "since", "command")}
    )


def _refused_by_owner(folder: Path, owner: dict[str, Any]) -> CheckpointError:
    if not _gone(owner):
        return _refused(folder, _told(owner))
    return CheckpointError(
        f"{folder} is in use: {_told(owner)}, which is gone, has left a child that holds it; end that (it has "
        f"{folder / LOCK} open)."
    )


def _refused(folder: Path, owner: str) -> CheckpointError:
    return CheckpointError(
        f"{folder} is in use by {owner}; wait for it, stop it, or choose another folder. If it is gone, delete "
        f"{folder / LOCK}."
    )
