"""A folder that one run at a time writes to; who comes second is told who is there.

The system holds the lock (``flock``) and lets go of it when the process ends, however it ends. The file ``.lock`` in
the folder says whose it is, for people and for file systems without locks.

A lock goes with the last copy of its open file, and a forked child is born with one. So it closes that first of all: a
worker that outlives its killed run keeps nobody out.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from onion.errors import CheckpointError

LOCK = ".lock"

log = logging.getLogger("onion")
_held: dict[str, object] = {}
_handles: set[int] = set()


@contextmanager
def alone_in(folder: Path, run: object) -> Iterator[None]:
    """Keep every other run out of a folder.

    The folder is this process's, not that of a child forked inside: the child is kept out too, and leaves the lock
    alone when it leaves.

    Args:
        folder: has to exist.
        run: whose the folder is; what asks for the same run again, in this process, gets in.

    Raises:
        CheckpointError: another run has it, and the message tells which; or the lock cannot be written.
    """
    place = os.path.realpath(folder)
    if place in _held:
        if _held[place] is not run:
            raise _refused(folder, "another run of this process")
        yield
        return
    _held[place] = run
    process = os.getpid()
    try:
        with _locked(folder):
            yield
    finally:
        if os.getpid() == process:
            del _held[place]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    path, process = folder / LOCK, os.getpid()
    try:
        handle = _taken(path)
    except BlockingIOError:
        raise _refused_by_owner(folder, _owner(path)) from None
    except OSError as error:
        raise CheckpointError(f"cannot write {path}: {error.strerror}.") from error
    try:
        yield
    finally:
        if os.getpid() == process:
            with suppress(OSError):
                path.unlink()  # before the lock goes, so that nobody's new lock is removed
            _close(handle)


def _taken(path: Path) -> int:
    """Take the lock and write the owner into it; return the open file that holds it.

    Raises:
        BlockingIOError: another process has it.
        OSError: the disk refused.
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        _handles.add(handle)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                told: AbstractContextManager[None] = suppress(OSError)  # a full disk: it holds without the owner's name
            except BlockingIOError:
                raise
            except OSError:  # no locks here: the owner's name has to do
                _refuse_living(_owner(path))
                told = nullcontext()
            if _still_there(path, handle):
                with told:
                    _sign(path, handle)
                return handle
        except BaseException:
            _close(handle)
            raise
        _close(handle)  # its owner removed it between our opening and locking it


def _close(handle: int) -> None:
    _handles.discard(handle)
    os.close(handle)


def _forget() -> None:
    """Keep nothing of the parent's, in a forked child. To close a copy does not unlock."""
    _held.clear()
    for handle in tuple(_handles):
        with suppress(OSError):
            _close(handle)


os.register_at_fork(after_in_child=_forget)


def _still_there(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _sign(path: Path, handle: int) -> None:
    """Write who we are; say whose rest this was."""
    if before := _owner(path):
        log.debug("took %s over from %s, which is gone", path.parent, _told(before))
    since = f"{datetime.now():%Y-%m-%d %H:%M:%S}"
    owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": since, "command": " ".join(sys.argv)[:500]}
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(owner).encode(), 0)


def _refuse_living(owner: dict[str, Any]) -> None:
    """Raise BlockingIOError unless the owner was a process of this machine that is gone."""
    if owner and not _gone(owner):
        raise BlockingIOError


def _gone(owner: dict[str, Any]) -> bool:
    return owner.get("host") == socket.gethostname() and not _lives(owner.get("pid"))


def _lives(pid: Any) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError, TypeError):
        return False
    except PermissionError:  # somebody else's
        return True
    return True


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
