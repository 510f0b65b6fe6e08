"""Stop when a metric gets no better."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onion.item import RunnerItem, Way
from onion.items.best import Best, Mode
from onion.state import State


class EarlyStop(RunnerItem):
    """Stop the run when a metric has not improved for some tests.

    It stands outside the item that reports the metric.

    Args:
        metric: a name in ``state.metrics``, such as ``tester.accuracy``.
        patience: how many values in a row may fail to improve on the best; one more stops the run. Default 3.
        mode: ``max`` (default) or ``min``.
        by: how much better counts as better. Default 0.
    """

    predicts = False

    def __init__(self, metric: str, patience: int = 3, mode: Mode = "max", by: float = 0.0) -> None:
        self.metric, self.patience, self.mode, self.by = metric, patience, mode, by
        self._best = Best(metric, mode)
        self._failures = 0
        self._resumed = False

    def initialize(self, state: State) -> None:
        """Begin anew, unless the run is resumed; one that was stopped here stays stopped."""
        if not self._resumed:
            self._best, self._failures = Best(self.metric, self.mode), 0
        self._resumed = False
        self._judge(state)

    def on_pass(self, state: State) -> Way:
        """Look at what was reported on the way out of the pass."""
        yield
        self._look(state)
        self._best.tell_if_missing(state, self.name)

    def on_batch(self, state: State) -> Way:
        """Look at what was reported during the batch."""
        yield
        self._look(state)

    def _look(self, state: State) -> None:
        if not self._best.fresh(state):
            return
        self._failures = 0 if self._best.better(state, self.by) else self._failures + 1
        self._judge(state)

    def _judge(self, state: State) -> None:
        if self._failures > self.patience:
            state.stop(f"{self.metric} has not improved on {self._best.value} for {self._failures} tests")

    def state_dict(self) -> dict[str, Any]:
        """Return the best value and the failures since."""
        return {**self._best.state_dict(), "failures": self._failures}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take them back."""
        self._best.load_state_dict(saved)
        self._failures = saved["failures"]
        self._resumed = True
