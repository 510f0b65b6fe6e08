"""The rings that tell the reaper of passes and batches."""

from __future__ import annotations

from killing.reaper import Reaper
from onion import HookIterator, Runner, RunnerItem, State, Tester


class Witness(RunnerItem):
    """Tell of each way in and out.

    Args:
        reaper: whom to tell.
        on_pass: what a pass is called.
        on_batch: what a batch is called.
    """

    passive = True

    def __init__(self, reaper: Reaper, on_pass: str, on_batch: str) -> None:
        self._reaper, self._pass, self._batch = reaper, on_pass, on_batch

    def on_pass(self, state: State) -> HookIterator:
        """Tell of a pass."""
        yield from self._around(self._pass)

    def on_batch(self, state: State) -> HookIterator:
        """Tell of a batch, as often as it comes by."""
        yield from self._around(self._batch)

    def _around(self, event: str) -> HookIterator:
        self._reaper.at(f"{event} in")
        yield
        self._reaper.at(f"{event} out")


class Begun(RunnerItem):
    """Tell the parent where the run begins; the rings outside have taken up their checkpoint."""

    passive = True

    def __init__(self, reaper: Reaper) -> None:
        self._reaper = reaper

    def initialize(self, state: State) -> None:
        """Tell."""
        self._reaper.tell({"begun": state.step})


def witnessed(runner: Runner, reaper: Reaper) -> Runner:
    """Return the runner with a witness outside all rings and one inside; its testers' onions get one inside."""
    for tester in runner.all(Tester):
        tester.runner = _with(tester.runner, Witness(reaper, "test pass", "test batch"))
    return _with(runner, Witness(reaper, "pass inner", "step inner"), Begun(reaper)).insert_before(
        runner.items[0], Witness(reaper, "pass outer", "step outer")
    )


def _with(runner: Runner, *innermost: RunnerItem) -> Runner:
    return runner.insert_after(runner.items[-1], *innermost)
