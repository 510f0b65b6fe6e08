"""`Spool`: samples out of a file of this machine."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from time import monotonic, sleep, time

import attrs

from onion.errors import CompositionError, DataError
from onion.online.sources.source import (
    Position,
    ReplayReader,
    Retention,
    Sample,
    Source,
    check_retention,
    from_json,
)
from onion.online.sources.spool_file import CAPACITY, BusyError, NoSpaceError, SpoolFile
from onion.online.sources.spool_writer import SpoolWriter
from onion.paths import anchored, shortened
from onion.validation import is_whole

log = logging.getLogger("onion")


@attrs.frozen
class Place:
    """A place in a spool: behind a sample.

    Numbers start again in each file, and repeat in an older copy that is written to. So a place also has the id of its
    file, and the time at which its sample was put in.

    Attributes:
        number: of the sample, from 1; 0 is before the first.
        origin: the id of the file; None: a version that knew of none has written the position.
        at: when the sample was put in, in seconds since 1970, to the microsecond; None where there is no ``origin``.
    """

    number: int
    origin: str | None = None
    at: str | None = None

    @staticmethod
    def parse(position: Position) -> Place | None:
        """Return the place that a position means; None: the beginning.

        Raises:
            DataError: it is none in a spool.
        """
        if not position:
            return None
        found = re.fullmatch(r"(\d+)(?:@([0-9a-f]{16})/(\d+\.\d{6}))?", position, re.ASCII)
        if found is None:
            raise DataError(
                f"{position!r} is no position in the spool; it is like 12@0123456789abcdef/1700000000.000000, or empty."
            )
        return Place(int(found[1]), found[2], found[3])

    def __str__(self) -> Position:
        return str(self.number) if self.origin is None else f"{self.number}@{self.origin}/{self.at}"


def moment(at: float) -> str:
    """Return a time in the format of places."""
    return f"{at:.6f}"


POLL_SECONDS = 0.01
"""Seconds between two looks for new samples."""

CHANGE_SECONDS = 0.1
"""Seconds between two changes of the file, by one that finds samples."""

BUSY_SECONDS = 0.1
"""Seconds to wait, with such a change, for a writer; it is put off otherwise."""

MAX_REMOVED = 1000
"""Samples removed at once, and pages given back, so that no writer has to wait for long."""


class Spool(Source):
    """Samples out of a file, an SQLite database that any process of this machine may put samples into.

        spool = Spool("samples.db", retention=timedelta(days=7))
        Runner(Saver("run"), Journal(), StreamProvider(spool, pass_every=10_000), ControlServer(), ...).run()

    Samples come in the order in which they were taken, whoever wrote them (``SpoolWriter``, or ``POST /samples``). One
    run reads a spool, from a local disk. A position is the number of the last sample that was read, from 1, with the
    random id of the file and the time at which that sample was put in; the beginning is the oldest sample that is still
    there. Another file in the place of the one that was read, or an older copy of it, is refused.

    Args:
        path: the file; made where there is none. Its folder exists.
        capacity: how many samples may wait to be read; then a write raises ``Full``. Samples that were read do not
            count, trained or not, so that a run that seldom saves is not short of samples. Default 100,000.
        retention: how long samples stay that no checkpoint asks for any more, for a replay of the run: a ``timedelta``
            since they were written, or the size of the whole file in bytes, above which they go. Default: a day.

    Raises:
        CompositionError: an argument is none of these.
    """

    def __init__(self, path: str | Path, capacity: int = CAPACITY, retention: Retention = timedelta(days=1)) -> None:
        if not (is_whole(capacity) and capacity >= 1):
            raise CompositionError(f"Spool: capacity must be an integer >= 1, got {capacity!r}.")
        check_retention("Spool", retention)
        self.path, self.capacity, self.retention = anchored(path), capacity, retention
        self._file = SpoolFile(path, "NORMAL")
        self._place: Place | None = None
        self._is_known = False
        self._origin: str | None = None
        self._is_set_up = False
        self._consumes = True
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
            sleep(min(POLL_SECONDS, left))
        places = [Place(number, self._origin, moment(at)) for number, _, at in rows]
        samples = [
            Sample(from_json(data, f"{self.path}, sample {place.number}"), str(place))
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
            self._check_same_file(place, self._opened().last())
            self._tidy(idle=True)

    def waiting(self) -> int:
        """Return how many samples have not been read yet."""
        last = self._opened().last()
        return max(0, last - self._begin(last))

    def writer(self, producer: str = "default") -> SpoolWriter:
        """Return what puts samples in."""
        return SpoolWriter(self.path, producer)

    def replay_reader(self) -> Source:
        """Return a source of the same samples that changes nothing in the file."""
        reader = Spool(self.path, self.capacity, self.retention)
        reader._consumes = False
        return ReplayReader(reader, first=str(Place(0)))

    def close(self) -> None:
        """Release the file."""
        self._is_set_up = self._is_known = False
        self._file.close()

    def __repr__(self) -> str:
        return f"Spool({shortened(self.path)!r})"

    def _opened(self) -> SpoolFile:
        """Return the file; the first time, set the capacity for its writers, and read its id."""
        if not self._consumes:
            self._origin = self._file.origin()
        elif not self._is_set_up:
            self._origin = self._file.ensure_origin()
            if self._file.value("SELECT capacity FROM meta") != self.capacity:
                with self._file.transaction():
                    self._file.execute("UPDATE meta SET capacity = ?", (self.capacity,))
            self._is_set_up, self._noted = True, -1
        return self._file

    # -- reading ------------------------------------------------------------------------------------------------------

    def _behind(self, n: int) -> list[tuple[int, str, float]]:
        file = self._opened()
        last = file.last()  # before the samples: one that comes in between must not look like a hole
        if self._place is not None and not self._is_known:
            self._check_same_file(self._place, last)
            self._is_known = True
        begin = self._begin(last)
        rows = file.rows("SELECT id, data, at FROM samples WHERE id > ? ORDER BY id LIMIT ?", begin, n)
        # Numbers have no gaps: a write that was undone has given its own back.
        if rows[-1][0] != begin + len(rows) if rows else begin < last:
            raise DataError(
                f"{self.path}: samples behind position {begin} have been removed; resume from a newer checkpoint, or "
                "put a copy of the file back that has them. How long they stay is Spool's retention."
            )
        if rows and self._place is None and begin > 0:
            log.warning("%s: the first %d samples have been removed; reading begins behind them", self.path, begin)
        return rows

    def _check_same_file(self, place: Place, last: int) -> None:
        """Require that this is the file of a place, not another one or an older copy of it.

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
            "with those beside it (-wal, -shm), or start a new run."
        )

    def _begin(self, last: int) -> int:
        """Return the position; that of the oldest sample there is, or else behind the last, where none was set."""
        if self._place is not None:
            return self._place.number
        oldest = self._file.value("SELECT min(id) FROM samples")
        return last if oldest is None else int(oldest) - 1

    # -- tidying ------------------------------------------------------------------------------------------------------

    def _tidy(self, idle: bool = False) -> None:
        """Store how far was read, for writers, and remove a portion; postponed by a concurrent writer or a full disk.

        Nothing is lost by that: it makes room, and is not what a run resumes from.
        """
        if not self._consumes:
            return
        now, file = monotonic(), self._opened()
        read = self._begin(file.last())
        behind = self._prunes or self._noted != read
        if now < self._next_tidying and not (idle and behind):
            return
        if idle:
            file.check_not_replaced()
        self._next_tidying = now + CHANGE_SECONDS
        if behind:
            with suppress(BusyError, NoSpaceError):
                self._change(read)

    def _change(self, read: int) -> None:
        file = self._file
        with file.transaction(BUSY_SECONDS):
            file.execute("UPDATE meta SET read = ?", (read,))
            expired = list(self._expired()) if self._prunes else []
            if expired:
                file.execute("UPDATE origin SET removed = ?, removed_at = ?", expired[-1])
                file.execute("DELETE FROM samples WHERE id <= ?", expired[-1][:1])
        self._noted, self._prunes = read, len(expired) == MAX_REMOVED
        if expired:
            file.shrink(MAX_REMOVED, BUSY_SECONDS)

    def _expired(self) -> Iterator[tuple[int, float]]:
        """Give the samples to be removed: the first ones, and without a gap even if a clock went back."""
        rows: list[tuple[int, float]] = self._file.rows(
            "SELECT id, at FROM samples WHERE id <= ? ORDER BY id LIMIT ?", self._committed, MAX_REMOVED
        )
        if isinstance(self.retention, timedelta):
            before = time() - self.retention.total_seconds()
            return takewhile(lambda row: row[1] <= before, rows)
        return iter(rows) if self._size() > self.retention else iter(())

    def _size(self) -> int:
        """Return the bytes of the file that are in use."""
        used = int(self._file.value("PRAGMA page_count")) - int(self._file.value("PRAGMA freelist_count"))
        return used * int(self._file.value("PRAGMA page_size"))
