"""A test onion that runs inside the training onion."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from onion.engine.item import RunnerItem
from onion.engine.periodic import Interval, Periodic
from onion.engine.placement import UNREPEATED, NotInside
from onion.engine.state import State
from onion.errors import CompositionError

if TYPE_CHECKING:
    from onion.engine.runner import Runner


class Tester(Periodic):
    """Run another onion for one pass every so often; its metrics become ours, ``<our name>.<metric>``.

        test = Runner(DataProvider(dev), Evaluator(Accuracy()), Forward(network))
        Runner(..., Tester(test, every=200), ...)

    The inner run has a separate State, whose ``parent`` is the outer one. What it records becomes ours too.

    Args:
        runner: the test onion. It needs its own data item.
        every: steps between two tests, a ``timedelta``, or ``"pass"``: after each pass. Default ``"pass"``.
        name: the prefix of the metrics. Default ``tester``, numbered if there are several.

    Raises:
        CompositionError: ``runner`` is no Runner; or it is inside what moves the weights after it, or runs its
            inside more than once a batch.
    """

    reports = may_join = True
    place_rules = (UNREPEATED, NotInside("moves_weights", "moves the weights after it"))
    __test__ = False  # pytest would take a class of this name for tests, wherever it is imported

    def __init__(self, runner: Runner, every: Interval = "pass", name: str | None = None) -> None:
        super().__init__(every)
        if not (isinstance(runner, RunnerItem) and runner.is_runner):
            raise CompositionError(f"Tester runs a Runner, not a {type(runner).__name__}: Tester(Runner(...)).")
        self.runner = runner
        if name is not None:
            self.name = name

    def act(self, state: State) -> None:
        """Test, and report."""
        with nullcontext() if self.group is None else self.group.apart_from_pieces():
            tested = self.runner.run(passes=1, parent=state)
        state.report({f"{self.name}.{metric}": value for metric, value in tested.metrics.items()})
        if state.records is not None and tested.records is not None:
            state.records.take(tested.records, f"{self.name}.")
