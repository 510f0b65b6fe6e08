"""Where the files of a folder stand that have been taken, and those that have been trained on."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from time import time
from typing import TypeAlias

from onion.checkpointing.atomic_files import rename, replace_file, sync, sync_folder
from onion.errors import DataError
from onion.online.sources.keeping import Keep

Line: TypeAlias = tuple[int, int]
"""The number of a file, from 1, and a line in it; 0 is before its first."""

REMOVED = ".removed"
"""The file that tells how many files have been removed, so that their numbers never come back."""

ORIGIN = ".origin"
"""The file with the random id that tells this folder from another one of its name, whose numbers begin anew."""


class FolderShelf:
    """The numbered files, ``<nine digits>-<name>``, in ``taken`` and ``trained``.

    Args:
        path: the folder.

    Raises:
        DataError: in all methods: the disk refuses, or files are missing.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.taken, self.trained = path, path / "taken", path / "trained"
        self._files: dict[int, Path] = {}
        self._removed = 0
        self.origin: str | None = None
        """The folder's id, 16 hex digits, once it was looked at; None: an earlier version has made it."""

    @property
    def oldest(self) -> int:
        """The number of the first file that is there, or will be."""
        return self._removed + 1

    @property
    def next(self) -> int:
        """The number of the next file to be taken."""
        return max(self._files, default=self._removed) + 1

    def make(self) -> None:
        """Make the folders that are not there."""
        with explained(self.path):
            for folder in (self.taken, self.trained):
                folder.mkdir(parents=True, exist_ok=True)

    def mark(self) -> None:
        """Give the folder an id, unless it has one."""
        with explained(self.path):
            if not (self.taken / ORIGIN).exists():
                replace_file(self.taken / ORIGIN, secrets.token_hex(8).encode())

    def look(self) -> None:
        """See what is there."""
        with explained(self.path):
            mark = self.taken / ORIGIN
            self.origin = mark.read_text("ascii") if mark.exists() else None
            self._files = {number: path for folder in (self.trained, self.taken) for number, path in _numbered(folder)}
            told = self.taken / REMOVED
            self._removed = int(told.read_bytes()) if told.exists() else 0
        for number in [each for each in self._files if each <= self._removed]:  # a kill came before they were removed
            with explained(self.path):
                self._files.pop(number).unlink(missing_ok=True)
        for number in range(self.oldest, self.next):
            if number not in self._files:
                raise DataError(
                    f"{self.path}: there is no file {number:09}-... in taken or trained, and there are later ones; put "
                    "it back."
                )

    def path_at(self, line: Line) -> Path | None:
        """Return the file that a place is in; None: it is still to come.

        Raises:
            DataError: it is gone, or there never was such a place.
        """
        number, row = line
        if number < self.oldest:
            raise DataError(
                f"{self.path}: the files behind position {number}:{row} have been removed, up to number "
                f"{self._removed}; go on from a newer checkpoint. How long they stay is Folder's keep."
            )
        if number > self.next or (number == self.next and row > 0):
            raise DataError(
                f"{self.path}: position {number}:{row} is behind the last file, number {self.next - 1}, so this is not "
                "the folder that was read; put that one back, or begin a new run."
            )
        return self._files.get(number)

    def take(self, path: Path) -> None:
        """Give a file the next number; its content is on the disk, and the new name too."""
        target = self.taken / f"{self.next:09}-{fitting(path.name)}"
        with explained(path):
            with path.open("rb") as file:
                sync(file)
            rename(path, target)
            sync_folder(self.taken)
            sync_folder(self.path)
        self._files[self.next] = target

    def put_away(self, before: int) -> None:
        """Put the files that were taken, up to a number and without it, to those that were trained on."""
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

    def prune(self, before: int, keep: Keep) -> None:
        """Remove the files before a number that are not to be kept, the first ones first."""
        doomed = list(self._doomed(before, keep))
        if not doomed:
            return
        with explained(self.path):
            replace_file(self.taken / REMOVED, str(doomed[-1]).encode())
            for number in doomed:
                self._files.pop(number).unlink(missing_ok=True)
        self._removed = doomed[-1]

    def _doomed(self, before: int, keep: Keep) -> Iterator[int]:
        with explained(self.path):
            numbers = sorted(number for number in self._files if number < before)
            told = {number: self._files[number].stat() for number in numbers}
        if isinstance(keep, timedelta):
            oldest = time() - keep.total_seconds()
            return takewhile(lambda number: told[number].st_mtime <= oldest, numbers)
        left = sum(each.st_size for each in told.values())
        for place, number in enumerate(numbers):
            if left <= keep:
                return iter(numbers[:place])
            left -= told[number].st_size
        return iter(numbers)


def fitting(name: str) -> str:
    """Return a name that has room for something in front; a name has at most 255 bytes. Its end is what is kept."""
    return name if len(os.fsencode(name)) <= 240 else name[-60:]


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the system's errors into ours."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{path}: {reason}; check the disk, and who may read and write this folder.") from error


def _numbered(folder: Path) -> Iterator[tuple[int, Path]]:
    for path in folder.iterdir():
        if found := re.match(r"(\d{9,})-", path.name, re.ASCII):
            yield int(found[1]), path
