"""The files of a `Folder`: `FolderWatcher` takes or rejects new files, `FolderArchive` keeps the taken ones."""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from time import monotonic, time
from typing import Any, TypeAlias

import attrs

from onion.checkpointing.atomic_files import PARTIAL, rename, replace_file, sync, sync_folder, write
from onion.data.files import iter_rows
from onion.errors import DataError
from onion.online.sources.source import Retention

log = logging.getLogger("onion")

Line: TypeAlias = tuple[int, int]
"""The number of a file, from 1, and a line in it; line 0 is before the first."""

REMOVED = ".removed"  # the file with the number of removed files, so that their numbers are never used again

ORIGIN = ".origin"
"""The file with the random id of this folder, as another folder has other files under the same numbers."""


class FolderArchive:
    """The numbered files, ``<nine digits>-<name>``, in ``taken`` and ``trained``.

    Raises:
        DataError: in all methods: the disk fails, or files are missing.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.taken, self.trained = path, path / "taken", path / "trained"
        self._files: dict[int, Path] = {}
        self._removed = 0
        self.origin: str | None = None
        """The folder's id, 16 hex digits, after a scan; None: the folder was made by an earlier version."""

    @property
    def oldest(self) -> int:
        """The number of the first file that is present, or will be."""
        return self._removed + 1

    @property
    def next(self) -> int:
        """The number of the next file to be taken."""
        return max(self._files, default=self._removed) + 1

    def make(self) -> None:
        """Create missing folders."""
        with explained(self.path):
            for folder in (self.taken, self.trained):
                folder.mkdir(parents=True, exist_ok=True)

    def ensure_origin(self) -> None:
        """Give the folder an id, unless it has one."""
        with explained(self.path):
            if not (self.taken / ORIGIN).exists():
                replace_file(self.taken / ORIGIN, secrets.token_hex(8).encode())

    def scan(self) -> None:
        """Read the names of the files."""
        with explained(self.path):
            mark = self.taken / ORIGIN
            self.origin = mark.read_text("ascii") if mark.exists() else None
            self._files = {number: path for folder in (self.trained, self.taken) for number, path in _numbered(folder)}
            removed = self.taken / REMOVED
            self._removed = int(removed.read_bytes()) if removed.exists() else 0
        for number in [each for each in self._files if each <= self._removed]:  # a crash came before their removal
            with explained(self.path):
                self._files.pop(number).unlink(missing_ok=True)
        for number in range(self.oldest, self.next):
            if number not in self._files:
                raise DataError(
                    f"{self.path}: there is no file {number:09}-... in taken or trained, although there are later "
                    "ones; restore it."
                )

    def path_at(self, line: Line) -> Path | None:
        """Return the file of a place, None if it is still to come; raise DataError if it is gone or never existed."""
        number, row = line
        if number < self.oldest:
            raise DataError(
                f"{self.path}: the files behind position {number}:{row} have been removed, up to number "
                f"{self._removed}; resume from a newer checkpoint. How long they are kept is Folder's retention."
            )
        if number > self.next or (number == self.next and row > 0):
            raise DataError(
                f"{self.path}: position {number}:{row} is behind the last file, number {self.next - 1}, so this is not "
                "the folder that was read; restore that folder, or start a new run."
            )
        return self._files.get(number)

    def take(self, path: Path) -> None:
        """Give a file the next number; its content and new name are on disk when this returns."""
        target = self.taken / f"{self.next:09}-{fitting(path.name)}"
        with explained(path):
            with path.open("rb") as file:
                sync(file)
            rename(path, target)
            sync_folder(self.taken)
            sync_folder(self.path)
        self._files[self.next] = target

    def move_to_trained(self, before: int) -> None:
        """Move the taken files before a number to those that were trained on."""
        moved = [number for number, path in self._files.items() if number < before and path.parent == self.taken]
        for number in moved:
            path = self._files[number]
            with explained(path):
                rename(path, self.trained / path.name)
            self._files[number] = self.trained / path.name
        if moved:
            with explained(self.path):
                sync_folder(self.trained)
                sync_folder(self.taken)

    def prune(self, before: int, retention: Retention) -> None:
        """Remove the files before a number that are past their retention, the first ones first."""
        expired = list(self._expired(before, retention))
        if not expired:
            return
        with explained(self.path):
            replace_file(self.taken / REMOVED, str(expired[-1]).encode())
            for number in expired:
                self._files.pop(number).unlink(missing_ok=True)
        self._removed = expired[-1]

    def _expired(self, before: int, retention: Retention) -> Iterator[int]:
        with explained(self.path):
            numbers = sorted(number for number in self._files if number < before)
            stats = {number: self._files[number].stat() for number in numbers}
        if isinstance(retention, timedelta):
            oldest = time() - retention.total_seconds()
            return takewhile(lambda number: stats[number].st_mtime <= oldest, numbers)
        left = sum(each.st_size for each in stats.values())
        for place, number in enumerate(numbers):
            if left <= retention:
                return iter(numbers[:place])
            left -= stats[number].st_size
        return iter(numbers)


def fitting(name: str) -> str:
    """Return a name with room for a prefix: the end of one of more than 240 bytes; file systems allow 255."""
    return name if len(os.fsencode(name)) <= 240 else name[-60:]


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Convert the system's errors into DataError."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{path}: {reason}; check the disk, and who may read and write this folder.") from error


def _numbered(folder: Path) -> Iterator[tuple[int, Path]]:
    for path in folder.iterdir():
        if found := re.match(r"(\d{9,})-", path.name, re.ASCII):
            yield int(found[1]), path


ENDINGS = (".jsonl", ".csv", ".tsv")
UNFINISHED = (PARTIAL, ".tmp")

CLOCK = ".clock"  # a file that is touched to read the clock of the file system
ROWS_AT_A_TIME = 1000  # rows checked between two looks at the time


@attrs.define
class _Look:
    """A file that is being checked: the rows that are left, and its size and time of change when that began."""

    path: Path
    stamp: tuple[int, int]
    rows: Iterator[Any]


class FolderWatcher:
    """Takes the files of a folder one by one, in the order of their names, once they have settled.

    Raises:
        DataError: in all methods: the disk fails.
    """

    def __init__(self, path: Path, archive: FolderArchive, settle: float) -> None:
        self.path, self.settle, self.rejected = path, settle, path / "rejected"
        self._archive = archive
        self._names: deque[str] = deque()
        self._look: _Look | None = None
        self._ignored: set[str] = set()

    def take(self, deadline: float) -> bool:
        """Take or reject the next file, if there is one; return whether something was done.

        Args:
            deadline: of ``time.monotonic()``, at which to stop checking a file; the next call continues with it.
        """
        look = self._look or self._next()
        if look is None:
            return False
        self._look = look
        try:
            while self._some(look):
                if monotonic() >= deadline:
                    return False
        except DataError as error:
            self._look = None
            if look.path.exists():  # otherwise it was removed meanwhile
                self._reject(look.path, str(error))
            return True
        self._look = None
        if _stamp(look.path) == look.stamp:  # otherwise it has changed meanwhile, and is checked again
            self._archive.take(look.path)
        return True

    def close(self) -> None:
        """Forget what was begun."""
        self._look = None
        self._names.clear()

    def _next(self) -> _Look | None:
        """Return the next file that is ready."""
        if not self._names:
            self._names.extend(self._listed())
        now = self._now() if self._names else 0.0
        while self._names:
            path = self.path / self._names.popleft()
            stamp = _stamp(path)
            # A time in the future was set on purpose, by a tool that copied the complete file.
            if stamp is not None and not 0 <= now - stamp[1] / 1e9 < self.settle:
                return _Look(path, stamp, iter_rows(path))
        return None

    def _listed(self) -> list[str]:
        with explained(self.path), os.scandir(self.path) as entries:
            names = [each.name for each in entries if each.is_file(follow_symlinks=False)]
        there = sorted(name for name in names if not (name.startswith(".") or name.endswith(UNFINISHED)))
        for name in there:
            if not name.lower().endswith(ENDINGS) and name not in self._ignored:
                self._ignored.add(name)
                path = _printable(self.path / name)
                log.warning("%s is ignored: its name ends with none of %s", path, ", ".join(ENDINGS))
        return [name for name in there if name.lower().endswith(ENDINGS)]

    def _now(self) -> float:
        """Return the time, in seconds, by the clock that sets the times of files."""
        clock = self._archive.taken / CLOCK
        with explained(clock):
            clock.touch()
            return clock.stat().st_mtime

    def _some(self, look: _Look) -> bool:
        """Check some more rows; return whether there may be others."""
        return sum(1 for _ in zip(range(ROWS_AT_A_TIME), look.rows, strict=False)) == ROWS_AT_A_TIME

    def _reject(self, path: Path, error: str) -> None:
        """Move a file to ``rejected``, with the reason. A crash in between may write the reason twice."""
        line, reason = _line_and_reason(path, error)
        log.warning("%s is rejected: %s", _printable(path), _printable(reason))
        with explained(self.rejected):
            self.rejected.mkdir(exist_ok=True)
            target = self._free(fitting(path.name))
            row = {"file": target.name, "line": line, "reason": reason}
            with (self.rejected / "rejected.jsonl").open("ab") as file:
                write(file, json.dumps(row, ensure_ascii=False).encode(errors="replace") + b"\n")
                sync(file)
            rename(path, target)
            sync_folder(self.rejected)
            sync_folder(self.path)

    def _free(self, name: str) -> Path:
        """Return an unused path for a rejected file; the name of the log is reserved."""
        target, number = self.rejected / name, 2
        while target.exists() or target.name == "rejected.jsonl":
            target, number = self.rejected / f"{number}-{name}", number + 1
        return target


def _stamp(path: Path) -> tuple[int, int] | None:
    """Return the size of a file and when it last changed, in nanoseconds; None: it is gone."""
    try:
        there = path.stat()
    except OSError:
        return None
    return there.st_size, there.st_mtime_ns


def _printable(words: object) -> str:
    """Return a text that every log accepts; the names of files may contain undecodable bytes (PEP 383)."""
    return str(words).encode(errors="backslashreplace").decode()


def _line_and_reason(path: Path, error: str) -> tuple[int | None, str]:
    """Return the line and the reason in an error's message."""
    said = error.removeprefix(f"{path}:").strip()
    found = re.match(r"(\d+): ", said, re.ASCII)
    return (int(found[1]), said[found.end() :]) if found else (None, said)
