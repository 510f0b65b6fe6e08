"""Metrics over a pass."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State

log = logging.getLogger("onion")


class Metric(Protocol):
    """The interface of a metric for an Evaluator."""

    def reset(self) -> None:
        """Discard all batches."""

    def update(self, outputs: Any, batch: Any) -> None:
        """Add a batch: the network's outputs, and the batch as the data item provided it."""

    def result(self) -> Mapping[str, float]:
        """Return the figures over all batches since the last reset, by name."""


@runtime_checkable
class SavedMetric(Metric, Protocol):
    """A metric that can be saved in the middle of a pass, so that a resumed run reports the same figures."""

    def state_dict(self) -> dict[str, Any]:
        """Return the sums so far, as a flat dict of arrays and JSON scalars."""

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the sums."""


class Evaluator(RunnerItem):
    """Update a metric with every batch and report its figures at the end of the pass.

    Args:
        metric: see Metric, and SavedMetric for a training onion that has to resume in the middle of a pass. A metric
            that reads the outputs in ``update`` waits for the device in every batch.
    """

    keep_for_inference = False
    reports = True

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self._loaded = False

    def on_pass(self, state: State) -> HookIterator:
        """Reset the metric; report its figures at the end unless the pass was cut short."""
        loaded, self._loaded = self._loaded, False
        if state.batch_id == 0 or not loaded:
            self.metric.reset()
        if state.batch_id > 0 and not loaded:
            log.warning("%s: resumed in the middle of a pass, and %s; it measures the rest", self.name, self._lack())
        yield
        if not state.pass_cut:
            state.report(self.metric.result())

    def _lack(self) -> str:
        saved = isinstance(self.metric, SavedMetric)
        return "the checkpoint has no state of its metric" if saved else "its metric has no state_dict"

    def on_batch(self, state: State) -> HookIterator:
        """Add the batch, unless it has no outputs because an item inside skipped it."""
        yield
        if state.outputs is not None:
            self.metric.update(state.outputs, state.batch)

    def state_dict(self) -> dict[str, Any]:
        """Return the metric's sums, if it has a ``state_dict``."""
        return self.metric.state_dict() if isinstance(self.metric, SavedMetric) else {}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the metric's sums."""
        if isinstance(self.metric, SavedMetric):
            self.metric.load_state_dict(saved)
            self._loaded = True
