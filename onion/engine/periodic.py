"""The base of items that act every so often: every N steps, every so much time, or at the end of every pass."""

from __future__ import annotations

from datetime import timedelta
from time import monotonic
from typing import Literal, TypeAlias

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.placement import UNREPEATED, Rule
from onion.engine.runner import Runner
from onion.engine.state import State
from onion.errors import CompositionError
from onion.validation import is_whole

Interval: TypeAlias = int | timedelta | Literal["pass"]
"""A number of steps, a time by the clock, or ``"pass"``."""


class Periodic(RunnerItem):
    """Call ``act`` on the way out of every N-th step, of the first step after every so much time, or of every pass.

    A pass has to have run to its end. Time runs from the end of the first step in this process, and then from one act
    to the next; where that is in the data is nothing that a resumed run repeats.

    Args:
        every: N, a ``datetime.timedelta``, or ``"pass"``.

    Raises:
        CompositionError: ``every`` is none of them; or it is no ``"pass"``, and the item is in a nested runner,
            whose rings leave a batch before it counts as a step; or it is inside what runs its inside more than
            once a batch.
    """

    keep_for_inference = False
    place_rules: tuple[Rule, ...] = (UNREPEATED,)
    transient: tuple[str, ...] = ("_next",)  # where in the data a time is up is nothing that a resumed run repeats

    def __init__(self, every: Interval) -> None:
        if not _is_interval(every):
            raise CompositionError(
                f"{type(self).__name__}: every must be a number of steps or a timedelta, above 0, "
                f'or "pass"; got {every!r}.'
            )
        self.every = every
        Periodic.reset(self)

    @property
    def alone_because(self) -> str:  # type: ignore[override]
        """Refuse an interval of time: the clocks of several processes differ."""
        by_clock = isinstance(self.every, timedelta) and not self.first_rank_only
        return "every=timedelta goes by the clock of each process; give a number of steps" if by_clock else ""

    def reset(self) -> None:
        """Let time run from the first step; a subclass with a state calls this too."""
        self._next: float | None = None

    def check(self, runner: Runner) -> None:
        """Refuse a place where a batch is left before it counts as a step."""
        nested = [other.name for other in runner.layout.holders(self) if isinstance(other, Runner)]
        if nested and self.every != "pass":
            raise CompositionError(
                f"{self.name} is in {nested[-1]}, whose items leave a batch before it counts as a step, so it "
                f"would never act; move it into the outermost runner."
            )

    def act(self, state: State) -> None:
        """Act; override this."""

    def on_pass(self, state: State) -> HookIterator:
        """Act at the end of the pass, if that is the period; a pass that was cut short is not over."""
        yield
        if self.every == "pass" and not state.pass_cut:
            self.act(state)

    def on_batch(self, state: State) -> HookIterator:
        """Act after the batch, if it completes a period."""
        yield
        if self.due(state):
            self.act(state)

    def due(self, state: State) -> bool:
        """Tell, once on the way out of a batch, whether it completes a period. A skipped batch completes none."""
        every, step = self.every, state.step
        if step != state.next_step:
            return False
        if isinstance(every, int):
            return step % every == 0
        return isinstance(every, timedelta) and self._time_is_up(every.total_seconds())

    def _time_is_up(self, seconds: float) -> bool:
        now, end = monotonic(), self._next
        due = end is not None and now >= end
        if due or end is None:
            self._next = now + seconds
        return due


def _is_interval(every: object) -> bool:
    if isinstance(every, timedelta):
        return every > timedelta(0)
    return every == "pass" or (is_whole(every) and every >= 1)
