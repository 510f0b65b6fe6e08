"""Items that record the hooks of a run, or fail on purpose."""

from __future__ import annotations

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State


class Recorder(RunnerItem):
    """Record every way in (``name.hook:in``), way out (``:out``) and exit by an error (``:error``).

    Args:
        name: the name of the item, with which its entries begin.
        trace: the list to append to, which several recorders may share. Default: a new list.
    """

    passive = True

    def __init__(self, name: str, trace: list[str] | None = None) -> None:
        self.name = name
        self.trace: list[str] = [] if trace is None else trace

    def initialize(self, state: State) -> HookIterator:
        """Record the run."""
        yield from self._record("initialize")

    def on_pass(self, state: State) -> HookIterator:
        """Record the pass."""
        yield from self._record("on_pass")

    def on_batch(self, state: State) -> HookIterator:
        """Record the batch."""
        yield from self._record("on_batch")

    def _record(self, hook: str) -> HookIterator:
        self.trace.append(f"{self.name}.{hook}:in")
        try:
            yield
        except BaseException:
            self.trace.append(f"{self.name}.{hook}:error")
            raise
        self.trace.append(f"{self.name}.{hook}:out")


class PlannedError(Exception):
    """The error that Failing raises."""


class Failing(RunnerItem):
    """Raise PlannedError at one moment, and do nothing else.

    Args:
        hook: ``initialize``, ``on_pass`` or ``on_batch``.
        way: ``in`` or ``out``.
        step: the value of ``state.step`` on the way in at which to fail; 0 is the first batch. Default 0.
        times: the number of failures. Default: no limit.
    """

    passive = True

    def __init__(self, hook: str, way: str = "in", step: int = 0, times: int | None = None) -> None:
        if hook not in ("initialize", "on_pass", "on_batch") or way not in ("in", "out"):
            raise ValueError(f"no such moment: {hook} {way}")
        self.hook, self.way, self.step, self.times = hook, way, step, times

    def initialize(self, state: State) -> HookIterator:
        """Fail around the run."""
        yield from self._fail("initialize", state)

    def on_pass(self, state: State) -> HookIterator:
        """Fail around the pass."""
        yield from self._fail("on_pass", state)

    def on_batch(self, state: State) -> HookIterator:
        """Fail around the batch."""
        yield from self._fail("on_batch", state)

    def _fail(self, hook: str, state: State) -> HookIterator:
        due = hook == self.hook and state.step == self.step and self.times != 0
        if due and self.times is not None:
            self.times -= 1
        if due and self.way == "in":
            raise PlannedError(f"{hook} in")
        yield
        if due and self.way == "out":
            raise PlannedError(f"{hook} out")
