"""What puts samples into a Redis Stream."""

from __future__ import annotations

import logging
from time import monotonic, sleep
from typing import Any

from onion.errors import CompositionError, DataError
from onion.online.source import Full, Intake
from onion.online.sources.json_text import texts_of
from onion.online.sources.redis_scripts import PUT
from onion.online.sources.redis_server import AwayError, RedisServer, RefusedError
from onion.validation import is_whole

log = logging.getLogger("onion")

CAPACITY = 100_000
"""Samples that may wait."""

POLL = 0.05
"""Seconds between two looks whether there is room."""

LATER = 30.0
"""Seconds after which it is worth trying again where the server has no room, in memory or on its disk."""


class RedisWriter(Intake):
    """Put samples into a Redis Stream, from any host.

        with RedisWriter("redis://host:6379/0", "samples", producer="clicks", block=60) as writer:
            for lot, samples in enumerate(lots, start=int(writer.mark or 0) + 1):
                writer.write(samples, mark=str(lot))

    A lot and its producer's mark are written by one script, all or nothing; a write with the mark that is there already
    takes nothing. What was taken is on the server's disk with ``appendonly yes`` and ``appendfsync always``.

    A server that is away is waited for. Whether a write that was cut off got through, only a mark can tell: one that
    has a mark is sent again, one without is not.

    Args:
        url: see ``RedisServer``.
        stream: the key of the stream. Beside it stand ``<stream>:marks`` and ``<stream>:count``.
        producer: whose mark it is. Default ``default``. One process at a time writes for one that has marks.
        maxlen: how many samples may wait to be read, by the slowest group; all of them while there is no group. Then
            writers are told ``Full``. Default 100,000.
        block: seconds to wait for room. Default None: not at all.
        patience: seconds to wait for a server that is away. Default 30.

    Raises:
        CompositionError: ``maxlen`` is no number from 1.
        DataError: when it is used: the server is away for longer, or does not let us in, or the key is no stream.
    """

    def __init__(
        self,
        url: str,
        stream: str,
        producer: str = "default",
        *,
        maxlen: int = CAPACITY,
        block: float | None = None,
        patience: float = 30.0,
    ) -> None:
        if not (is_whole(maxlen) and maxlen >= 1):
            raise CompositionError(f"RedisWriter: maxlen={maxlen!r} is no number of samples from 1.")
        self.stream, self.producer, self.maxlen, self.block, self.patience = stream, producer, maxlen, block, patience
        self._server = RedisServer(url)

    def write(self, samples: list[Any], mark: str | None = None) -> int:
        """Put samples at the end, all of them or none.

        Args:
            samples: JSON values.
            mark: how far the producer has got. None leaves the mark as it is.

        Returns:
            How many were taken; 0 where this mark is there already.

        Raises:
            Full: there is no room.
            DataError: a sample is no JSON value, there are more than could ever have room, or the server is away.
        """
        texts = texts_of(samples)
        if len(texts) > self.maxlen:
            raise DataError(
                f"{self.stream}: {len(texts)} samples in one write are more than maxlen, {self.maxlen}; write fewer at "
                "once."
            )
        if not texts and mark is None:
            return 0
        deadline = monotonic() + (self.block or 0.0)
        while (taken := self._put(texts, mark)) < 0:
            left = deadline - monotonic()
            if left <= 0:
                raise Full
            sleep(min(POLL, left))
        return taken

    @property
    def mark(self) -> str | None:
        """The mark of the last write of this producer that had one; None before its first."""
        mark = self._call(True, "HGET", f"{self.stream}:marks", self.producer)
        return None if mark is None else str(mark.decode())

    def close(self) -> None:
        """Let go of the connection; a later write opens another one."""
        self._server.drop()

    def __enter__(self) -> RedisWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RedisWriter({self.stream!r}, {self.producer!r})"

    def _put(self, texts: list[str], mark: str | None) -> int:
        """Return how many samples were taken; -1: there is no room for them."""
        keys = (self.stream, f"{self.stream}:marks", f"{self.stream}:count")
        marked = "0" if mark is None else "1"
        arguments = (self.producer, marked, mark or "", self.maxlen)
        return int(self._call(mark is not None, "EVAL", PUT, len(keys), *keys, *arguments, *texts))

    def _call(self, may_repeat: bool, *command: str | int) -> Any:
        deadline = monotonic() + self.patience
        while True:
            try:
                return self._server.call(*command)
            except RefusedError as error:
                if error.code in ("OOM", "MISCONF"):
                    log.warning("%s takes no samples: %s", self._server.name, error)
                    raise Full(LATER) from error
                raise DataError(
                    f"{self._server.name}, {self.stream}: {error}; check the key and the server."
                ) from error
            except AwayError as error:
                if error.sent and not may_repeat:
                    raise DataError(
                        f"{self._server.name} was lost in the middle of a write ({error}), and nobody knows whether it "
                        "got through; writes with a mark can be repeated."
                    ) from error
                if monotonic() + self._server.pause > deadline:
                    raise DataError(f"{self._server.name} is away ({error}); start it, or check the URL.") from error
                sleep(self._server.pause)
