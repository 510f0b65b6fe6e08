"""The samples of a Redis Stream, read without taking them."""

from __future__ import annotations

from onion.online.source import Position
from onion.online.sources.redis_place import Place
from onion.online.sources.redis_stream import Fields, RedisStream, pairs, text


class RedisAside(RedisStream):
    """Read a stream from its very first entry on, by no group, and acknowledge nothing.

    Args:
        stream: whose entries. They have to be there still: see its ``keep``.

    Raises:
        DataError: at the first read: entries have been removed.
    """

    def __init__(self, stream: RedisStream) -> None:
        super().__init__(stream.url, stream.stream, stream.group, stream.consumer, keep=stream.keep)
        self._place = Place(number=0)

    @property
    def position(self) -> Position:
        """The place behind the last sample that was read."""
        return super().position

    @position.setter
    def position(self, position: Position) -> None:
        self._place = Place.parse(position) if position else Place(number=0)

    def commit(self, position: Position) -> None:
        """Acknowledge nothing."""

    def waiting(self) -> None:
        """Return None: nobody waits for what is read here."""

    def _set(self) -> None:
        """Move no group."""

    def _entries(self, n: int, seconds: float) -> list[tuple[str, Fields]]:
        answer = self._server.call("XRANGE", self.stream, f"({self._place.id}", "+", "COUNT", n)
        return [(text(entry), pairs(fields)) for entry, fields in answer]
