"""Places in a spool."""

from __future__ import annotations

import re

import attrs

from onion.errors import DataError
from onion.online.source import Position


@attrs.frozen
class Place:
    """A place in a spool: behind a sample.

    Numbers begin anew in each file, and come again in an older copy that is written to. So a place also tells of which
    file it is, and when its sample was put in.

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
    """Return a time as places tell it."""
    return f"{at:.6f}"
