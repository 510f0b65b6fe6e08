"""A moment of a run: an event, and how many of its like have come before in the process.

event                       number
step|pass outer|inner in|out    the batch or pass, its way in or out, seen from the outermost or the innermost ring
test batch|pass in|out          the same of the nested tests, seen from their innermost ring
byte FILE                       the byte that is not written any more, over all files of that name in all checkpoints;
                                ``byte temporary`` is of what takes a file's place as a whole
log FILE                        the same of a log
sync before|after               the file or folder that is brought to the disk
rename before|after             the file or folder that is renamed
rename unsynced                 the same, just before the next sync
remove before|half|after        the folder that is removed; half: half of its files are gone
clock                           seconds since the process began; the kill comes from outside

Numbers begin with 1. Two runs of an onion come by the same points; only ``clock`` is another moment every time, and
those of an onion that saves in a thread of its own may change places with those of its log.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

KINDS = ("step", "pass", "test", "byte", "sync", "rename", "remove", "log", "clock")
"""The first words of the events."""

Census: TypeAlias = Mapping[str, float]
"""How often each event comes in a run that nobody kills; of ``clock``, how many seconds it takes."""


@dataclass(frozen=True)
class Point:
    """The number-th event of its name."""

    event: str
    number: float

    @classmethod
    def parse(cls, text: str) -> Point:
        """Read what ``str`` wrote.

        Raises:
            ValueError: it names no kind of event, or has no number.
        """
        event, _, number = text.rpartition(" ")
        if kind_of(event) not in KINDS or not number.replace(".", "", 1).isdecimal():
            raise ValueError(f"{text!r} is no point; write an event and its number, such as 'rename unsynced 3'")
        return cls(event, float(number))

    def __str__(self) -> str:
        return f"{self.event} {self.number:g}" if self.by_clock else f"{self.event} {self.number:.0f}"

    @property
    def kind(self) -> str:
        """The first word of the event."""
        return kind_of(self.event)

    @property
    def by_clock(self) -> bool:
        """Whether the kill comes from outside, at a time."""
        return self.kind == "clock"


def kind_of(event: str) -> str:
    """Return the first word of an event."""
    return event.partition(" ")[0]


def kinds_in(census: Census) -> list[str]:
    """Return the kinds of which there is an event."""
    there = {kind_of(event) for event in census}
    return [kind for kind in KINDS if kind in there]


def draw(census: Census, kind: str, chance: random.Random) -> Point:
    """Draw one of the events of a kind, each as likely as the others, then one of its numbers."""
    event = chance.choice(sorted(event for event in census if kind_of(event) == kind))
    count = census[event]
    return Point(event, round(chance.uniform(0, count), 4) if kind == "clock" else chance.randint(1, int(count)))
