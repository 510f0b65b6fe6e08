"""Counts the events of a process, and ends it at its point."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable

from killing.child import Tell
from killing.points import Point


class Reaper:
    """What rings and files tell of every event.

    Args:
        point: where the process dies; None: nowhere.
        tell: what the process says to its parent.
    """

    def __init__(self, point: Point | None, tell: Tell) -> None:
        self.point, self.tell = point, tell
        self.seen: Counter[str] = Counter()

    def at(self, event: str, first: Callable[[], object] = lambda: None) -> None:
        """Count an event, and die if it is the one; do something first."""
        if self.among(event, 1) is not None:
            first()
            die()

    def among(self, event: str, many: int) -> int | None:
        """Count that many events; return how many come before the one to die at, None if it is not among them."""
        before = self.seen[event]
        self.seen[event] += many
        if self.point is None or self.point.event != event or not before < self.point.number <= before + many:
            return None
        return int(self.point.number) - 1 - before


def die() -> None:
    """Leave as by the power switch: nothing is flushed, no ``finally`` runs."""
    os.kill(os.getpid(), signal.SIGKILL)
