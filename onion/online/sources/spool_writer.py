"""What puts samples into a spool."""

from __future__ import annotations

import logging
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

from onion.errors import DataError
from onion.online.source import Full, Intake
from onion.online.sources.json_text import texts_of
from onion.online.sources.spool_file import NoSpaceError, SpoolFile
from onion.paths import anchored, shortened

log = logging.getLogger("onion")

POLL = 0.02
"""Seconds between two looks whether there is room."""

LATER = 30.0
"""Seconds after which it is worth trying again on a full disk."""


class SpoolWriter(Intake):
    """Put samples into a spool, from any process of this machine.

        with SpoolWriter("samples.db", producer="clicks", block=60) as writer:
            for lot, samples in enumerate(lots, start=int(writer.mark or 0) + 1):
                writer.write(samples, mark=str(lot))

    Samples that were taken are on the disk (SQLite with ``synchronous=FULL``), and so is the producer's mark, or
    neither: a producer that was killed goes on behind its mark. A write with the mark that is there already takes
    nothing, so one that does not know whether it got through writes again.

    Many writers may write at once, each for itself; the file of a local disk, not of a network. Only one thread uses a
    writer at a time, and only one process writes for a producer that has marks.

    Args:
        path: the spool's file; made where there is none. Its folder exists.
        producer: whose mark it is. Default ``default``.
        block: seconds to wait for room; ``math.inf``: as long as it takes. Default None: not at all.

    Raises:
        DataError: when it is used: the file is no spool, locked or damaged.
    """

    def __init__(self, path: str | Path, producer: str = "default", block: float | None = None) -> None:
        self.path, self.producer, self.block = anchored(path), producer, block
        self._file = SpoolFile(path, "FULL")

    def write(self, samples: list[Any], mark: str | None = None) -> int:
        """Put samples at the end, all of them or none; they are on disk when this returns.

        Args:
            samples: JSON values.
            mark: how far the producer has got. None leaves the mark as it is.

        Returns:
            How many were taken; 0 where this mark is there already.

        Raises:
            Full: there is no room, on the disk or in the spool.
            DataError: a sample is no JSON value, or there are more than could ever have room.
        """
        texts = texts_of(samples)
        if not texts and mark is None:
            return 0
        deadline = monotonic() + (self.block or 0.0)
        while (taken := self._put(texts, mark)) is None:
            left = deadline - monotonic()
            if left <= 0:
                raise Full
            sleep(min(POLL, left))
        return taken

    @property
    def mark(self) -> str | None:
        """The mark of the last write of this producer that had one; None before its first."""
        mark: str | None = self._file.value("SELECT mark FROM marks WHERE producer = ?", self.producer)
        return mark

    def close(self) -> None:
        """Let go of the file; a later write opens it again."""
        self._file.close()

    def __enter__(self) -> SpoolWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SpoolWriter({shortened(self.path)!r}, {self.producer!r})"

    def _put(self, texts: list[str], mark: str | None) -> int | None:
        """Return how many samples were taken; None: there is no room for them."""
        file, now = self._file, time()
        try:
            with file.changing():
                if mark is not None and mark == self.mark:
                    return 0
                if not self._has_room(len(texts)):
                    return None
                file.do("INSERT INTO samples (data, at) VALUES (?, ?)", *((text, now) for text in texts))
                if mark is not None:
                    file.do("INSERT OR REPLACE INTO marks VALUES (?, ?)", (self.producer, mark))
        except NoSpaceError as error:
            log.warning("no samples are taken: %s", error)
            raise Full(LATER) from error
        return len(texts)

    def _has_room(self, n: int) -> bool:
        ((capacity, read),) = self._file.rows("SELECT capacity, read FROM meta")
        if n > capacity:
            raise DataError(
                f"{self.path}: {n} samples in one write are more than the spool's capacity, {capacity}; write fewer at "
                "once."
            )
        return self._file.last() - int(read) + n <= int(capacity)
