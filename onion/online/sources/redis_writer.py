"""`RedisWriter`: puts samples into a Redis Stream."""

from __future__ import annotations

import logging
from time import monotonic, sleep
from typing import Any

from onion.errors import CompositionError, DataError
from onion.online.sources.redis_server import PUT, AwayError, RedisServer, RefusedError
from onion.online.sources.source import Full, SampleWriter
from onion.validation import is_whole

log = logging.getLogger("onion")

CAPACITY = 100_000
"""Samples that may wait."""

SERVER_FULL_SECONDS = 30.0
"""After which it is worth trying again where the server has no room, in memory or on its disk."""


class RedisWriter(SampleWriter):
    """Put samples into a Redis Stream, from any host.

        with RedisWriter("redis://host:6379/0", "samples", producer="clicks", block=60) as writer:
            for number, samples in enumerate(lots, start=int(writer.cursor or 0) + 1):
                writer.write(samples, cursor=str(number))

    Samples and their producer's cursor are written by one script, all or nothing; a write with the cursor that is there
    already takes nothing. What was taken is on the server's disk with ``appendonly yes`` and ``appendfsync always``.

    A server that is away is waited for. Whether a write that was interrupted succeeded, only a cursor can tell: one
    that has a cursor is sent again, one without is not.

    Args:
        url: see ``RedisServer``.
        stream: the key of the stream. Beside it are ``<stream>:marks``, the cursors, and ``<stream>:count``.
        producer: whose cursor it is. Default ``default``. One process at a time writes for one that has cursors.
        maxlen: how many samples may wait to be read, by the slowest group; all of them while there is no group. Then
            a write raises ``Full``. Default 100,000.
        block: seconds to wait for room. Default None: not at all.
        timeout: seconds to wait for a server that is away. Default 30.

    Raises:
        CompositionError: ``maxlen`` is no integer >= 1.
        DataError: when it is used: the server is away for longer, or denies access, or the key is no stream.
    """

    POLL_SECONDS = 0.05

    def __init__(
        self,
        url: str,
        stream: str,
        producer: str = "default",
        *,
        maxlen: int = CAPACITY,
        block: float | None = None,
        timeout: float = 30.0,
    ) -> None:
        if not (is_whole(maxlen) and maxlen >= 1):
            raise CompositionError(f"RedisWriter: maxlen must be an integer >= 1, got {maxlen!r}.")
        self.stream, self.producer, self.maxlen, self.block, self.timeout = stream, producer, maxlen, block, timeout
        self._server = RedisServer(url)

    @property
    def cursor(self) -> str | None:
        """The cursor of the last write of this producer that had one; None before its first."""
        cursor = self._call(True, "HGET", f"{self.stream}:marks", self.producer)
        return None if cursor is None else str(cursor.decode())

    def close(self) -> None:
        """Close the connection; a later write opens another one."""
        self._server.drop()

    def __repr__(self) -> str:
        return f"RedisWriter({self.stream!r}, {self.producer!r})"

    def _try_write(self, texts: list[str], cursor: str | None) -> int | None:
        if len(texts) > self.maxlen:
            raise DataError(
                f"{self.stream}: {len(texts)} samples in one write are more than maxlen, {self.maxlen}; write fewer at "
                "a time."
            )
        keys = (self.stream, f"{self.stream}:marks", f"{self.stream}:count")
        arguments = (self.producer, "0" if cursor is None else "1", cursor or "", self.maxlen)
        taken = int(self._call(cursor is not None, "EVAL", PUT, len(keys), *keys, *arguments, *texts))
        return taken if taken >= 0 else None

    def _call(self, may_repeat: bool, *command: str | int) -> Any:
        deadline = monotonic() + self.timeout
        while True:
            try:
                return self._server.call(*command)
            except RefusedError as error:
                if error.code in ("OOM", "MISCONF"):
                    log.warning("%s takes no samples: %s", self._server.name, error)
                    raise Full(SERVER_FULL_SECONDS) from error
                raise DataError(
                    f"{self._server.name}, {self.stream}: {error}; check the key and the server."
                ) from error
            except AwayError as error:
                if error.sent and not may_repeat:
                    raise DataError(
                        f"{self._server.name} was lost in the middle of a write ({error}), and it is unknown whether "
                        "that succeeded; writes with a cursor can be repeated."
                    ) from error
                if monotonic() + self._server.pause > deadline:
                    raise DataError(f"{self._server.name} is away ({error}); start it, or check the URL.") from error
                sleep(self._server.pause)
