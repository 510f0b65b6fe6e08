"""The base of items that act every so often: every N steps, or at the end of every pass."""

from __future__ import annotations

from typing import Literal, TypeAlias

from onion.errors import CompositionError
from onion.item import RunnerItem, Way
from onion.state import State

Every: TypeAlias = int | Literal["pass"]


class Periodic(RunnerItem):
    """Call ``act`` on the way out of every N-th step, or of every pass that ran to its end.

    Args:
        every: N, or ``"pass"``.

    Raises:
        CompositionError: ``every`` is neither.
    """

    def __init__(self, every: Every) -> None:
        if every != "pass" and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
            raise CompositionError(f'{type(self).__name__}: every={every!r} is neither a number of steps nor "pass".')
        self.every = every

    def act(self, state: State) -> None:
        """Do what is done every so often."""

    def on_pass(self, state: State) -> Way:
        """Act at the end of the pass, if that is the period; a pass that was cut short is not over."""
        yield
        if self.every == "pass" and not state.pass_cut:
            self.act(state)

    def on_batch(self, state: State) -> Way:
        """Act after the batch, if it completes a period."""
        yield
        if self.due(state):
            self.act(state)

    def due(self, state: State) -> bool:
        """Tell, on the way out of a batch, whether this batch completes a period. A skipped batch completes none."""
        return self.every != "pass" and state.step % self.every == 0 and state.step == state.next_step
