"""Samples out of a file of this machine."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from time import monotonic, sleep, time

from onion.errors import CompositionError, DataError
from onion.online.source import Position, Sample, Source
from onion.online.sources.json_text import value_of
from onion.online.sources.keeping import Keep, refuse_wrong_keep
from onion.online.sources.spool_file import CAPACITY, BusyError, NoSpaceError, SpoolFile
from onion.online.sources.spool_place import Place, moment
from onion.online.sources.spool_writer import SpoolWriter
from onion.paths import anchored, shortened
from onion.validation import is_whole

log = logging.getLogger("onion")

POLL = 0.01
"""Seconds between two looks for new samples."""

PERIOD = 0.1
"""Seconds between two changes of the file, by one that finds samples."""

PATIENCE = 0.1
"""Seconds to wait, with such a change, for a writer; it is put off otherwise."""

PORTION = 1000
"""Samples removed at once, and pages given back, so that no writer has to wait for long."""


class Spool(Source):
    """Samples out of a file, an SQLite database that any process of this machine may put samples into.

        spool = Spool("samples.db", keep=timedelta(days=7))
        Runner(Saver("run"), Record(), StreamProvider(spool, pass_every=10_000), Control(), ...).run()

    Samples come in the order in which they were taken, whoever wrote them (``SpoolWriter``, or ``POST /samples``). One
    run reads a spool, from a local disk. A position is the number of the last sample that was read, from 1, with the
    random id of the file and the time at which that sample was put in; the beginning is the oldest sample that is still
    there. Another file in the place of the one that was read, or an older copy of it, is refused.

    Args:
        path: the file; made where there is none. Its folder exists.
        capacity: how many samples may wait to be read; then writers are told ``Full``. Samples that were read do not
            count, trained or not, so that a run that seldom saves is not short of samples. Default 100,000.
        keep: how long samples stay that no checkpoint asks for any more, for a replay of the run: a ``timedelta`` since
            they were written, or the size of the whole file in bytes, above which they go. Default: a day.

    Raises:
        CompositionError: an argument is none of these.
    """

    def __init__(self, path: str | Path, capacity: int = CAPACITY, keep: Keep = timedelta(days=1)) -> None:
        if not (is_whole(capacity) and capacity >= 1):
            raise CompositionError(f"Spool: capacity={capacity!r} is no number of samples from 1.")
        refuse_wrong_keep("Spool", keep)
        self.path, self.capacity, self.keep = anchored(path), capacity, keep
        self._file = SpoolFile(path, "NORMAL")
        self._place: Place | None = None
        self._is_known = False
        self._origin: str | None = None
        self._is_set_up = False
        self._noted = -1
        self._committed = 0
        self._prunes = False
        self._next_tidying = 0.0

    @property
    def position(self) -> Position:
        """The place behind the last sample that was read; ``""`` before the first."""
        return "" if self._place is None else str(self._place)

    @position.setter
    def position(self, position: Position) -> None:
        self._place, self._is_known = Place.parse(position), False

    def read(self, n: int, timeout: float) -> list[Sample]:
        """Return the next samples; see ``Source.read``.

        Raises:
            DataError: the file is no spool, damaged, locked for long, or not the one that was read; or it does not have
                the samples behind this position.
        """
        deadline = monotonic() + timeout
        while not (rows := self._behind(n)):
            self._tidy(idle=True)
            left = deadline - monotonic()
            if left <= 0:
                return []
            sleep(min(POLL, left))
        places = [Place(number, self._origin, moment(at)) for number, _, at in rows]
        samples = [
            Sample(value_of(data, f"{self.path}, sample {place.number}"), str(place))
            for place, (_, data, _) in zip(places, rows, strict=True)
        ]
        self._place = places[-1]
        self._tidy()
        return samples

    def commit(self, position: Position) -> None:
        """Remove samples up to a position, once they are older than is to be kept; little by little.

        Raises:
            DataError: the file is not the one that was read.
        """
        place = Place.parse(position)
        self._committed = 0 if place is None else place.number
        self._prunes = self._committed > 0
        if place is not None and self._prunes:
            self._refuse_others(place, self._opened().last())
            self._tidy(idle=True)

    def waiting(self) -> int:
        """Return how many samples have not been read yet."""
        last = self._opened().last()
        return max(0, last - self._begin(last))

    def writer(self, producer: str = "default") -> SpoolWriter:
        """Return what puts samples in."""
        return SpoolWriter(self.path, producer)

    def aside(self) -> Source:
        """Return a source of the same samples that leaves no trace here; see ``SpoolAside``."""
        from onion.online.sources.spool_aside import SpoolAside

        return SpoolAside(self)

    def close(self) -> None:
        """Let go of the file."""
        self._is_set_up = self._is_known = False
        self._file.close()

    def __repr__(self) -> str:
        return f"Spool({shortened(self.path)!r})"

    def _opened(self) -> SpoolFile:
        """Return the file; once, tell its writers the capacity, and see which file it is."""
        if not self._is_set_up:
            self._origin = self._file.give_origin()
            if self._file.value("SELECT capacity FROM meta") != self.capacity:
                with self._file.changing():
                    self._file.do("UPDATE meta SET capacity = ?", (self.capacity,))
            self._is_set_up, self._noted = True, -1
        return self._file

    # -- reading ------------------------------------------------------------------------------------------------------

    def _behind(self, n: int) -> list[tuple[int, str, float]]:
        file = self._opened()
        last = file.last()  # before the samples: one that comes in between must not look like a hole
        if self._place is not None and not self._is_known:
            self._refuse_others(self._place, last)
            self._is_known = True
        begin = self._begin(last)
        rows = file.rows("SELECT id, data, at FROM samples WHERE id > ? ORDER BY id LIMIT ?", begin, n)
        # Numbers have no gaps: a write that was undone has given its own back.
        if rows[-1][0] != begin + len(rows) if rows else begin < last:
            raise DataError(
                f"{self.path}: samples behind position {begin} have been removed; go on from a newer checkpoint, or "
                "put a copy of the file back that has them. How long they stay is Spool's keep."
            )
        if rows and self._place is None and begin > 0:
            log.warning("%s: the first %d samples have been removed; reading begins behind them", self.path, begin)
        return rows

    def _refuse_others(self, place: Place, last: int) -> None:
        """Insist that this is the file that a place is in, and not another one, or an older copy of it.

        Args:
            place: where a run has been.
            last: the number of the last sample that was ever put into this file.
        """
        if place.origin is not None and place.origin != self._origin:
            raise self._other(f"its id is {self._origin}, that of the one that was read is {place.origin}")
        if place.number > last:
            raise self._other(f"position {place.number} is behind the last sample, {last}")
        if place.at is not None:
            at = self._file.written_at(place.number)
            if at is not None and moment(at) != place.at:
                raise self._other(f"sample {place.number} is another one, put in at another time")

    def _other(self, why: str) -> DataError:
        return DataError(
            f"{self.path}: {why}, so the file is not the one that was read, or an older copy of it; put that one back "
            "with those beside it (-wal, -shm), or begin a new run."
        )

    def _begin(self, last: int) -> int:
        """Return the position; that of the oldest sample there is, or else behind the last, where none was set."""
        if self._place is not None:
            return self._place.number
        oldest = self._file.value("SELECT min(id) FROM samples")
        return last if oldest is None else int(oldest) - 1

    # -- tidying ------------------------------------------------------------------------------------------------------

    def _tidy(self, idle: bool = False) -> None:
        """Tell writers how far was read, and remove a portion; a writer that is at work, or a full disk, puts it off.

        Nothing is lost with it: it is what makes room, and not what tells where to go on.
        """
        now, file = monotonic(), self._opened()
        read = self._begin(file.last())
        behind = self._prunes or self._noted != read
        if now < self._next_tidying and not (idle and behind):
            return
        if idle:
            file.refuse_replaced()
        self._next_tidying = now + PERIOD
        if behind:
            with suppress(BusyError, NoSpaceError):
                self._change(read)

    def _change(self, read: int) -> None:
        file = self._file
        with file.changing(PATIENCE):
            file.do("UPDATE meta SET read = ?", (read,))
            doomed = list(self._doomed()) if self._prunes else []
            if doomed:
                file.do("UPDATE origin SET removed = ?, removed_at = ?", doomed[-1])
                file.do("DELETE FROM samples WHERE id <= ?", doomed[-1][:1])
        self._noted, self._prunes = read, len(doomed) == PORTION
        if doomed:
            file.shrink(PORTION, PATIENCE)

    def _doomed(self) -> Iterator[tuple[int, float]]:
        """Give the samples to be removed: the first ones, and without a gap even if a clock went back."""
        rows: list[tuple[int, float]] = self._file.rows(
            "SELECT id, at FROM samples WHERE id <= ? ORDER BY id LIMIT ?", self._committed, PORTION
        )
        if isinstance(self.keep, timedelta):
            before = time() - self.keep.total_seconds()
            return takewhile(lambda row: row[1] <= before, rows)
        return iter(rows) if self._size() > self.keep else iter(())

    def _size(self) -> int:
        """Return the bytes of the file that are in use."""
        used = int(self._file.value("PRAGMA page_count")) - int(self._file.value("PRAGMA freelist_count"))
        return used * int(self._file.value("PRAGMA page_size"))
