"""The progress of a run as lines of text, for logs: whole, seldom, and each complete in itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TextIO

import attrs

FIRST, LONGEST = 5.0, 300.0
"""Seconds until the first line, and between two lines at most: services that run tests end what is silent for 10
minutes. The distance is doubled from line to line, so that a day takes 300 lines and a minute 4."""


class Pace:
    """When the next line is due.

    Args:
        now: the time, in seconds.
    """

    def __init__(self, now: float) -> None:
        self._distance = FIRST
        self._next = now + FIRST

    def due(self, now: float) -> bool:
        """Tell whether a line is due; then the next one is due after a longer while."""
        if now < self._next:
            return False
        self._distance = min(2 * self._distance, LONGEST)
        self._next = now + self._distance
        return True


@attrs.frozen
class Mark:
    """How far a run has come.

    Attributes:
        seconds: by some clock.
        step: steps made.
        examples: examples handed out.
    """

    seconds: float
    step: int
    examples: float

    def speed(self, since: Mark) -> list[str]:
        """Tell steps and examples a second since an earlier mark."""
        seconds = max(self.seconds - since.seconds, 1e-9)
        steps, examples = (self.step - since.step) / seconds, (self.examples - since.examples) / seconds
        return [f"{steps:.3g} steps/s", *([f"{examples:.3g} examples/s"] if examples else [])]

    def seconds_to(self, step: int, since: Mark) -> float:
        """Return how long it takes to a later step, at the speed since an earlier mark."""
        return (self.seconds - since.seconds) * (step - self.step) / max(self.step - since.step, 1)


class Lines:
    """Writes a line when one is due.

    Args:
        file: where to. If it cannot be written any more, no more lines are written.
        begun: where the run begins in this process.
    """

    def __init__(self, file: TextIO, begun: Mark) -> None:
        self._file: TextIO | None = file
        self._begun = self._before = begun
        self._pace = Pace(begun.seconds)

    def due(self, now: float) -> bool:
        """Tell whether it is time."""
        return self._file is not None and self._pace.due(now)

    def under_way(self, now: Mark, total: int | None, where: str, figures: Mapping[str, float]) -> None:
        """Write how far the run has come, how fast it was since the last line, and how much time is left.

        Args:
            now: how far.
            total: steps of the whole run; None: unknown.
            where: the pass.
            figures: what is shown, by name.
        """
        left = [] if total is None else [f"{clock(now.seconds_to(total, self._begun))} left"]
        self._write(now, total, where, figures, [*now.speed(self._before), *left])
        self._before = now

    def end(self, now: Mark, total: int | None, where: str, figures: Mapping[str, float], stopped: str | None) -> None:
        """Write what it came to, with the speed of the whole run, and why it was stopped if it was."""
        if now.step > self._begun.step:
            why = [f"stopped: {stopped}"] if stopped else []
            took = f"{clock(now.seconds - self._begun.seconds)} in all"
            self._write(now, total, where, figures, [*now.speed(self._begun), took, *why])

    def _write(self, now: Mark, total: int | None, where: str, figures: Mapping[str, float], ends: list[str]) -> None:
        steps = f"step {now.step}" if total is None else f"step {now.step}/{total}"
        shown = " ".join(f"{name}={value:.4g}" for name, value in figures.items())
        line = ", ".join([f"{steps}, {where}: {shown}" if shown else f"{steps}, {where}", *ends])
        try:
            if self._file is not None:
                self._file.write(f"{line}\n")  # in one call, or lines of other threads and processes come in between
                self._file.flush()
        except (OSError, ValueError):  # a pipe whose reader is gone; a file that was closed
            self._file = None


def clock(seconds: float) -> str:
    """Return a time as h:mm:ss, with days before it if it has any."""
    return str(timedelta(seconds=round(seconds)))
