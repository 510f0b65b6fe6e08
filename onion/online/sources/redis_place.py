"""Places in a Redis Stream."""

from __future__ import annotations

import re

import attrs

from onion.errors import DataError
from onion.online.source import Position


@attrs.frozen
class Place:
    """A place in a stream: behind an entry.

    Attributes:
        id: of the entry, ``<milliseconds>-<sequence>``.
        number: of the last entry up to here that a RedisWriter wrote; None before the first.
    """

    id: str = "0-0"
    number: int | None = None

    @staticmethod
    def parse(position: Position) -> Place:
        """Return the place that a position means.

        Raises:
            DataError: it is none in a stream.
        """
        if not position:
            return Place()
        found = re.fullmatch(r"(\d+-\d+)(?:#(\d+))?", position, re.ASCII)
        if found is None:
            raise DataError(f"{position!r} is no position in a Redis Stream; it is like 1700000000000-0#12, or empty.")
        return Place(found[1], None if found[2] is None else int(found[2]))

    def __str__(self) -> Position:
        if self.id == "0-0":
            return ""
        return self.id if self.number is None else f"{self.id}#{self.number}"

    def then(self, entry: str, number: int | None) -> Place | None:
        """Return the place behind the next entry; None: this one cannot come next."""
        gap = None not in (number, self.number) and number != (self.number or 0) + 1
        return None if gap or order(entry) <= order(self.id) else Place(entry, number or self.number)


def order(entry: str) -> tuple[int, int]:
    """Return what entries are sorted by."""
    milliseconds, _, sequence = entry.partition("-")
    return int(milliseconds), int(sequence)
