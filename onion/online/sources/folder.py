"""`Folder`: samples from files that are put into a folder."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from onion.checkpointing.lock import exclusive_lock
from onion.data.files import iter_rows
from onion.errors import CheckpointError, CompositionError, DataError
from onion.online.sources.folder_files import FolderArchive, FolderWatcher, Line
from onion.online.sources.source import Position, ReplayReader, Retention, Sample, Source, check_retention
from onion.paths import anchored, shortened
from onion.validation import is_number

log = logging.getLogger("onion")

POLL_SECONDS = 0.1  # seconds between two looks for new files


class Folder(Source):
    """Samples from files that are put into a folder: .jsonl, .csv and .tsv, one row per sample (see ``iter_rows``).

        folder = Folder("inbox")
        Runner(Saver("run"), StreamProvider(folder, pass_every=10_000), ParameterUpdater(...), ...).run()

    Each file is read once, as a whole or not at all. Write it under a name that begins with ``.`` or ends with
    ``.partial`` or ``.tmp``, and rename it; or leave it unchanged for ``settle`` seconds. Files present at the same
    time come in the order of their names. Each file is processed in these steps:

    * it is checked, in constant memory; one that cannot be read to its end is moved to ``rejected/``, with a row
      ``{"file", "line", "reason"}`` in ``rejected/rejected.jsonl``;
    * it is moved to ``taken/<number>-<name>``, and then its rows are read; its content must not change any more;
    * once no checkpoint needs it, it is moved to ``trained/``, and removed after its retention.

    One run reads a folder. A position is the number of a file and the line of the last row that was read, ``3:120``;
    ``4:0`` is behind the last row of file 3; and the folder's random id, ``@0123456789abcdef``: another folder in its
    place is refused. The beginning is the oldest file that is still present.

    Args:
        path: the folder; created with its subfolders if needed. All of it is on one file system.
        retention: how long files that no checkpoint needs any more are kept, for a replay of the run: a ``timedelta``
            since their last change, or their total size in bytes. Default: a day.
        settle: seconds for which a file must not have changed, by the clock of its file system. Default 1.

    Raises:
        CompositionError: an argument is invalid.
    """

    def __init__(self, path: str | Path, retention: Retention = timedelta(days=1), settle: float = 1.0) -> None:
        check_retention("Folder", retention)
        if not (is_number(settle) and settle >= 0):
            raise CompositionError(f"Folder: settle must be a number of seconds >= 0, got {settle!r}.")
        self.path, self.retention, self.settle = anchored(path), retention, settle
        self._archive = FolderArchive(self.path)
        self._watcher = FolderWatcher(self.path, self._archive, settle)
        self._lock: ExitStack | None = None
        self._consumes = True
        self._place: Line | None = None
        self._origin: str | None = None  # of the folder in which the place is
        self._rows: Iterator[tuple[int, Any]] = iter(())
        self._coming: tuple[int, Any] | None = None

    @property
    def position(self) -> Position:
        """The place behind the last row that was read; ``""`` before the first."""
        return "" if self._place is None else position_of(self._place, self._origin)

    @position.setter
    def position(self, position: Position) -> None:
        self._place, self._origin = place_of(position)
        self._forget()

    def read(self, n: int, timeout: float) -> list[Sample]:
        """Return the next rows; see ``Source.read``.

        Raises:
            DataError: the folder cannot be read, another process reads it, or the next files are gone.
        """
        deadline = monotonic() + timeout
        self._open()
        while not (samples := self._some(n)):
            if self._consumes and self._watcher.take(deadline):
                continue
            left = deadline - monotonic()
            if left <= 0:
                return []
            sleep(min(POLL_SECONDS, left))
            if not self._consumes:
                self._archive.scan()
        return samples

    def commit(self, position: Position) -> None:
        """Move the files before a position to ``trained``, and remove those past their retention."""
        line, origin = place_of(position)
        if line is not None:
            self._open()
            self._check_same_folder(line, origin)
            self._archive.move_to_trained(line[0])
            self._archive.prune(line[0], self.retention)

    def waiting(self) -> None:
        """Return None: rows are not counted before they are read."""

    def replay_reader(self) -> Source:
        """Return a source of the files that a run has taken; it takes no files itself."""
        reader = Folder(self.path, self.retention, self.settle)
        reader._consumes = False
        return ReplayReader(reader, first=position_of((1, 0), None))

    def close(self) -> None:
        """Release the folder."""
        self._forget()
        self._watcher.close()
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.close()

    def __repr__(self) -> str:
        return f"Folder({shortened(self.path)!r})"

    def _forget(self) -> None:
        """Forget the current file, and the row read ahead."""
        self._rows, self._coming = iter(()), None

    # -- reading ------------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Lock the folder, and read what is in it."""
        if not self._consumes:
            if self._coming is None:
                self._archive.scan()
        elif self._lock is None:
            self._archive.make()
            with ExitStack() as stack:
                try:
                    stack.enter_context(exclusive_lock(self.path, self))
                except CheckpointError as error:
                    raise DataError(str(error)) from None
                self._archive.ensure_origin()
                self._archive.scan()
                self._lock = stack.pop_all()

    def _some(self, n: int) -> list[Sample]:
        """Return available rows; none: all files have been read."""
        samples: list[Sample] = []
        while len(samples) < n and self._ready():
            assert self._coming is not None
            assert self._place is not None
            line, row = self._coming
            self._go(self._place[0], line)
            samples.append(Sample(row, self.position))
        return samples

    def _ready(self) -> bool:
        """Read a row ahead, of this file or the next one; return whether there is one."""
        while self._coming is None:
            number, line = self._begin()
            self._check_same_folder((number, line), self._origin)
            self._origin = self._archive.origin
            path = self._archive.path_at((number, line))
            if path is None:
                return False
            self._rows = (each for each in iter_rows(path) if each[0] > line)
            self._go(number, line)
            if line > 0 and self._coming is None:
                raise DataError(f"{path}: it has no row after line {line} any more; restore the original file.")
        return True

    def _go(self, number: int, line: int) -> None:
        """Advance behind a line and read the next row of the file ahead; after the last one, go to the next file.

        So the place shows whether a file has been read to its end: only then may it be moved.
        """
        self._coming = next(self._rows, None)
        self._place = (number, line) if self._coming else (number + 1, 0)

    def _check_same_folder(self, line: Line, origin: str | None) -> None:
        """Require that this is the folder of a position."""
        if origin not in (None, self._archive.origin):
            raise DataError(
                f"{self.path}: its id is {self._archive.origin}, and that of the folder that was read up to position "
                f"{line[0]}:{line[1]} is {origin}; restore that folder, or start a new run."
            )

    def _begin(self) -> Line:
        if self._place is not None:
            return self._place
        oldest = self._archive.oldest
        if oldest > 1 and self._archive.path_at((oldest, 0)) is not None:
            log.warning("%s: the first %d files have been removed; reading starts after them", self.path, oldest - 1)
        return oldest, 0


def position_of(line: Line, origin: str | None) -> Position:
    """Return the position of a line in the folder with an id, if it has one."""
    return f"{line[0]}:{line[1]}" if origin is None else f"{line[0]}:{line[1]}@{origin}"


def place_of(position: Position) -> tuple[Line | None, str | None]:
    """Return the file number and line, None at the beginning, and the id of the folder; raise DataError if invalid."""
    if not position:
        return None, None
    found = re.fullmatch(r"(\d+):(\d+)(?:@([0-9a-f]{16}))?", position, re.ASCII)
    if found is None:
        raise DataError(f"{position!r} is no position in a folder; it must be like 3:120@0123456789abcdef, or empty.")
    return (int(found[1]), int(found[2])), found[3]
