"""Metrics over a pass."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State

log = logging.getLogger("onion")


class Metric(Protocol):
    """What an Evaluator needs of a metric."""

    def reset(self) -> None:
        """Forget all batches."""

    def update(self, outputs: Any, batch: Any) -> None:
        """Take in a batch: the network's outputs and the batch as the data item gave it."""

    def result(self) -> Mapping[str, float]:
        """Return the figures over all batches since the last reset, by name."""


@runtime_checkable
class SavedMetric(Metric, Protocol):
    """A metric that can be saved in mid-pass, so that a resumed run ends the pass with the same figures."""

    def state_dict(self) -> dict[str, Any]:
        """Return the sums so far, as a flat dict of arrays and JSON scalars."""

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take them back."""


class Evaluator(RunnerItem):
    """Feed every batch to a metric and report its figures at the end of the pass.

    Args:
        metric: see Metric, and SavedMetric for training onions that are to be resumed in mid-pass. A metric that reads
            the outputs at once waits for the device every batch.
    """

    keep_for_inference = False
    reports = True

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self._loaded = False

    def on_pass(self, state: State) -> HookIterator:
        """Reset the metric, report at the end; a pass that was cut short is not over."""
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
        return "the checkpoint has nothing of its metric" if saved else "its metric has no state_dict"

    def on_batch(self, state: State) -> HookIterator:
        """Take in the batch, unless no network made anything of it: an item inside has left it out."""
        yield
        if state.outputs is not None:
            self.metric.update(state.outputs, state.batch)

    def state_dict(self) -> dict[str, Any]:
        """Return the metric's sums, if it has a ``state_dict``."""
        return self.metric.state_dict() if isinstance(self.metric, SavedMetric) else {}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take them back."""
        if isinstance(self.metric, SavedMetric):
            self.metric.load_state_dict(saved)
            self._loaded = True
