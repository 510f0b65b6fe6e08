"""An end by the clock."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError


class TimeLimit(RunnerItem):
    """End the run in good order after a time: the batch is finished, and all rings leave.

        Runner(Saver("out"), TimeLimit(seconds=3600), ...).run(passes=10)  # an hour now, the rest another time

    It is the time of this process, so a resumed run has all of it again; at least one batch is run every time. Steps
    and passes are limited by ``run(passes=..., steps=...)``.

    Args:
        seconds: the time from the start of the run; more than 0.
        clock: gives the time in seconds. Default ``time.monotonic``.

    Raises:
        CompositionError: ``seconds`` is no positive number.
    """

    keep_for_inference = False
    passive = True

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
            raise CompositionError(f"TimeLimit: seconds must be a positive number, got {seconds!r}.")
        self.seconds, self.clock = seconds, clock
        self.reset()

    def reset(self) -> None:
        """Forget the end of an earlier run."""
        self._end = 0.0

    def initialize(self, state: State) -> None:
        """Start the clock; a run inside this one has a separate time."""
        self._end = self.clock() + self.seconds

    def on_batch(self, state: State) -> HookIterator:
        """Stop the run after the batch, if the time is over."""
        yield
        if self.clock() >= self._end:
            state.stop(f"{self.seconds:g} seconds are over")
