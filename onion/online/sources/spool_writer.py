"""`SpoolWriter`: puts samples into a spool."""

from __future__ import annotations

import logging
from pathlib import Path
from time import time

from onion.errors import DataError
from onion.online.sources.source import Full, SampleWriter
from onion.online.sources.spool_file import NoSpaceError, SpoolFile
from onion.paths import anchored, shortened

log = logging.getLogger("onion")

DISK_FULL_SECONDS = 30.0
"""After which it is worth trying again on a full disk."""


class SpoolWriter(SampleWriter):
    """Put samples into a spool, from any process of this machine.

        with SpoolWriter("samples.db", producer="clicks", block=60) as writer:
            for number, samples in enumerate(lots, start=int(writer.cursor or 0) + 1):
                writer.write(samples, cursor=str(number))

    Samples that were taken are on the disk (SQLite with ``synchronous=FULL``), and so is the producer's cursor, or
    neither: a producer that was killed continues behind its cursor. A write with the cursor that is there already takes
    nothing, so one that does not know whether it succeeded writes again.

    Many writers may write concurrently; the file is on a local disk, not on a network's. Only one thread uses a writer
    at a time, and only one process writes for a producer that has cursors.

    Args:
        path: the spool's file; made where there is none. Its folder exists.
        producer: whose cursor it is. Default ``default``.
        block: seconds to wait for room; ``math.inf``: as long as it takes. Default None: not at all.

    Raises:
        DataError: when it is used: the file is no spool, locked or damaged.
    """

    def __init__(self, path: str | Path, producer: str = "default", block: float | None = None) -> None:
        self.path, self.producer, self.block = anchored(path), producer, block
        self._file = SpoolFile(path, "FULL")

    @property
    def cursor(self) -> str | None:
        """The cursor of the last write of this producer that had one; None before its first."""
        # The table keeps the name that files of earlier versions have.
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
            log.warning("no samples are taken: %s", error)
            raise Full(DISK_FULL_SECONDS) from error
        return len(texts)

    def _has_room(self, n: int) -> bool:
        ((capacity, read),) = self._file.rows("SELECT capacity, read FROM meta")
        if n > capacity:
            raise DataError(
                f"{self.path}: {n} samples in one write are more than the spool's capacity, {capacity}; write fewer at "
                "a time."
            )
        return self._file.last() - int(read) + n <= int(capacity)
