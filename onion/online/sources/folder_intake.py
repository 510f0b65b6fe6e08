"""How files come into a folder: looked through, then taken or rejected."""

from __future__ import annotations

import json
import logging
import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import attrs

from onion.checkpointing.atomic_files import PARTIAL, rename, sync, sync_folder, write
from onion.data.files import iter_rows
from onion.errors import DataError
from onion.online.sources.folder_shelf import FolderShelf, explained, fitting

log = logging.getLogger("onion")

ENDINGS = (".jsonl", ".csv", ".tsv")
NOT_YET = (PARTIAL, ".tmp")

CLOCK = ".clock"
"""A file that is touched to learn the time of the file system."""

ROWS = 1000
"""How many rows are looked through between two looks at the time."""


@attrs.define
class _Look:
    """A file that is being looked through.

    Attributes:
        path: Of the file.
        stamp: Its size and times when that began.
        rows: The rows that are left.
    """

    path: Path
    stamp: tuple[int, int]
    rows: Iterator[Any]


class FolderIntake:
    """Take the files of a folder one by one, in the order of their names.

    Args:
        path: the folder.
        shelf: where they go.
        settle: seconds for which a file has not changed.
    """

    def __init__(self, path: Path, shelf: FolderShelf, settle: float) -> None:
        self.path, self.settle, self.rejected = path, settle, path / "rejected"
        self._shelf = shelf
        self._names: deque[str] = deque()
        self._look: _Look | None = None
        self._ignored: set[str] = set()

    def take(self, deadline: float) -> bool:
        """Take or reject the next file, if there is one; tell whether something was done.

        Args:
            deadline: of ``time.monotonic()``, at which to stop looking through a file; the next call goes on with it.

        Raises:
            DataError: the disk refuses.
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
            if look.path.exists():  # or else it was taken away again
                self._reject(look.path, str(error))
            return True
        self._look = None
        if _stamp(look.path) == look.stamp:  # or else it has changed meanwhile, and is looked through anew
            self._shelf.take(look.path)
        return True

    def close(self) -> None:
        """Forget what was seen."""
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
            # A time to come was set on purpose, when the file was complete: tools that copy do so.
            if stamp is not None and not 0 <= now - stamp[1] / 1e9 < self.settle:
                return _Look(path, stamp, iter_rows(path))
        return None

    def _listed(self) -> list[str]:
        with explained(self.path), os.scandir(self.path) as entries:
            names = [each.name for each in entries if each.is_file(follow_symlinks=False)]
        there = sorted(name for name in names if not (name.startswith(".") or name.endswith(NOT_YET)))
        for name in there:
            if not name.lower().endswith(ENDINGS) and name not in self._ignored:
                self._ignored.add(name)
                path = _printable(self.path / name)
                log.warning("%s is left where it is: its name ends with none of %s", path, ", ".join(ENDINGS))
        return [name for name in there if name.lower().endswith(ENDINGS)]

    def _now(self) -> float:
        """Return the time, in seconds, by the clock that files get their times from."""
        clock = self._shelf.taken / CLOCK
        with explained(clock):
            clock.touch()
            return clock.stat().st_mtime

    def _some(self, look: _Look) -> bool:
        """Look through some more rows; tell whether there may be others."""
        return sum(1 for _ in zip(range(ROWS), look.rows, strict=False)) == ROWS

    def _reject(self, path: Path, error: str) -> None:
        """Put a file aside, with the reason. A crash in between may write the reason twice."""
        line, reason = _told(path, error)
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
        """Return a path for a rejected file that nothing stands at, nor what tells about it."""
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


def _printable(told: object) -> str:
    """Return a text that every log takes; the names of files may hold bytes that are no text (PEP 383)."""
    return str(told).encode(errors="backslashreplace").decode()


def _told(path: Path, error: str) -> tuple[int | None, str]:
    """Return the line and the reason that an error tells."""
    said = error.removeprefix(f"{path}:").strip()
    found = re.match(r"(\d+): ", said, re.ASCII)
    return (int(found[1]), said[found.end() :]) if found else (None, said)
