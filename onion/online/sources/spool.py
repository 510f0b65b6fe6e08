"""`Spool` and `SpoolWriter`: samples from a local file, and into it."""

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
    Full,
    Position,
    ReplayReader,
    Retention,
    Sample,
    SampleWriter,
    Source,
    check_retention,
    from_json,
)
from onion.online.sources.spool_file import CAPACITY, BusyError, NoSpaceError, SpoolFile
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
        origin: the id of the file; None: the position was written by a version without ids.
        at: when the sample was put in, in seconds since 1970, to the microsecond; None if there is no ``origin``.
    """

    number: int
    origin: str | None = None
    at: str | None = None

    @staticmethod
    def parse(position: Position) -> Place | None:
        """Return the place of a position; None: the beginning. Raise DataError if it is not one in a spool."""
        if not position:
            return None
        found = re.fullmatch(r"(\d+)(?:@([0-9a-f]{16})/(\d+\.\d{6}))?", position, re.ASCII)
        if found is None:
            raise DataError(
                f"{position!r} is no position in the spool; it must be like 12@0123456789abcdef/1700000000.000000, or "
                "empty."
            )
        return Place(int(found[1]), found[2], found[3])

    def __str__(self) -> Position:
        return str(self.number) if self.origin is None else f"{self.number}@{self.origin}/{self.at}"


def moment(at: float) -> str:
    """Return a time in the format of places."""
    return f"{at:.6f}"


POLL_SECONDS = 0.01  # seconds between two looks for new samples
CHANGE_SECONDS = 0.1  # minimum time between two changes of the file while there are samples, in seconds
BUSY_SECONDS = 0.1  # seconds that such a change waits for a writer before it is postponed
MAX_REMOVED = 1000  # samples removed, and pages freed, at once, so that no writer has to wait for long


class Spool(Source):
    """Samples from a file, an SQLite database that any process of this machine may put samples into.

        spool = Spool("samples.db", retention=timedelta(days=7))
        Runner(Saver("run"), Journal(), StreamProvider(spool, pass_every=10_000), ControlServer(), ...).run()

    Samples come in the order in which they were accepted, whoever wrote them (``SpoolWriter``, or ``POST /samples``).
    One run reads a spool, from a local disk. A position is the number of the last sample that was read, from 1, with
    the random id of the file and the time at which that sample was put in; the beginning is the oldest sample that is
    still present. Another file in place of the one that was read, or an older copy of it, is refused.

    Args:
        path: the file; created if needed. Its folder must exist.
        capacity: samples that may wait to be read; beyond it a write raises ``Full``. Samples that were read do not
            count, trained or not, so that a run that seldom saves is not short of samples. Default 100,000.
        retention: how long samples that no checkpoint needs any more are kept, for a replay of the run: a ``timedelta``
            since they were written, or the maximum size of the file in bytes. Default: a day.

    Raises:
        CompositionError: an argument is invalid.
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
            DataError: the file is not a spool, damaged, locked for long, or not the one that was read; or it lacks the
                samples behind this position.
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
        """Remove samples up to a position, once they are past their retention, little by little.

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
        """Return a writer of samples."""
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
        """Return the file; the first time, store the capacity for its writers, and read its id."""
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
        last = file.last()  # before the samples: one that arrives in between must not look like a gap
        if self._place is not None and not self._is_known:
            self._check_same_file(self._place, last)
            self._is_known = True
        begin = self._begin(last)
        rows = file.rows("SELECT id, data, at FROM samples WHERE id > ? ORDER BY id LIMIT ?", begin, n)
        # Numbers have no gaps: a write that was rolled back has returned its own.
        if rows[-1][0] != begin + len(rows) if rows else begin < last:
            raise DataError(
                f"{self.path}: samples behind position {begin} have been removed; resume from a newer checkpoint, or "
                "restore a copy of the file that has them. How long they are kept is Spool's retention."
            )
        if rows and self._place is None and begin > 0:
            log.warning("%s: the first %d samples have been removed; reading starts after them", self.path, begin)
        return rows

    def _check_same_file(self, place: Place, last: int) -> None:
        """Require that this is the file of a place, not another one or an older copy of it.

        Args:
            place: where a run has been.
            last: the number of the last sample ever put into this file.
        """
        if place.origin is not None and place.origin != self._origin:
            raise self._other(f"its id is {self._origin}, that of the file that was read is {place.origin}")
        if place.number > last:
            raise self._other(f"position {place.number} is behind the last sample, {last}")
        if place.at is not None:
            at = self._file.written_at(place.number)
            if at is not None and moment(at) != place.at:
                raise self._other(f"sample {place.number} is another one, put in at another time")

    def _other(self, why: str) -> DataError:
        return DataError(
            f"{self.path}: {why}, so the file is not the one that was read, or an older copy of it; restore that file "
            "with those beside it (-wal, -shm), or start a new run."
        )

    def _begin(self, last: int) -> int:
        """Return the position; if none was set, that before the oldest sample, or behind the last if there is none."""
        if self._place is not None:
            return self._place.number
        oldest = self._file.value("SELECT min(id) FROM samples")
        return last if oldest is None else int(oldest) - 1

    # -- tidying ------------------------------------------------------------------------------------------------------

    def _tidy(self, idle: bool = False) -> None:
        """Store the progress, for writers, and remove a portion; postponed by a concurrent writer or a full disk.

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
        """Return the samples to remove: the first ones, without a gap even if a clock went back."""
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


DISK_FULL_SECONDS = 30.0  # when to try again if the disk is full


class SpoolWriter(SampleWriter):
    """Put samples into a spool, from any process of this machine.

        with SpoolWriter("samples.db", producer="clicks", block=60) as writer:
            for number, samples in enumerate(lots, start=int(writer.cursor or 0) + 1):
                writer.write(samples, cursor=str(number))

    Accepted samples and the producer's cursor are on disk (SQLite with ``synchronous=FULL``), or neither: a producer
    that was killed continues at its cursor. A write with the cursor that is stored already takes nothing, so a producer
    that does not know whether a write succeeded repeats it.

    Many writers may write concurrently, to a file on a local disk. Only one thread uses a writer at a time, and only
    one process writes for a producer with cursors.

    Args:
        path: the spool's file; created if needed. Its folder must exist.
        producer: owner of the cursor. Default ``default``.
        block: seconds to wait for room; ``math.inf``: without limit. Default None: not at all.

    Raises:
        DataError: in use: the file is not a spool, locked or damaged.
    """

    def __init__(self, path: str | Path, producer: str = "default", block: float | None = None) -> None:
        self.path, self.producer, self.block = anchored(path), producer, block
        self._file = SpoolFile(path, "FULL")

    @property
    def cursor(self) -> str | None:
        """The cursor of the last write of this producer that had one; None before its first."""
        # The name of the table is part of the file format.
        cursor: str | None = self._file.value("SELECT mark FROM marks WHERE producer = ?", self.producer)
        return cursor

    def close(self) -> None:
        """Close the file; a later write opens it again."""
        self._file.close()

    def __repr__(self) -> str:
        return f"SpoolWriter({shortened(self.path)!r}, {self.producer!r})"

    def _try_write(self, texts: list[str], cursor: str | None) -> int | None:
        file, now = self._file, time()
        try:
            with file.transaction():
                if cursor is not None and cursor == self.cursor:
                    return 0
                if not self._has_room(len(texts)):
                    return None
                file.execute("INSERT INTO samples (data, at) VALUES (?, ?)", *((text, now) for text in texts))
                if cursor is not None:
                    file.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (self.producer, cursor))
        except NoSpaceError as error:
            log.warning("no samples are accepted: %s", error)
            raise Full(DISK_FULL_SECONDS) from error
        return len(texts)

    def _has_room(self, n: int) -> bool:
        ((capacity, read),) = self._file.rows("SELECT capacity, read FROM meta")
        if n > capacity:
            raise DataError(
                f"{self.path}: {n} samples in one write exceed the spool's capacity, {capacity}; write fewer at a time."
            )
        return self._file.last() - int(read) + n <= int(capacity)
