"""Metrics over a pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from onion.item import RunnerItem, Way
from onion.state import State


class Metric(Protocol):
    """What an Evaluator needs of a metric."""

    def reset(self) -> None:
        """Forget all batches."""

    def update(self, outputs: Any, batch: Any) -> None:
        """Take in a batch: the network's outputs and the batch as the data item gave it."""

    def result(self) -> Mapping[str, float]:
        """Return the figures over all batches since the last reset, by name."""


class Evaluator(RunnerItem):
    """Feed every batch to a metric and report its figures at the end of the pass.

    Args:
        metric: see Metric; reading the outputs waits for the device, so in training onions expect a synchronisation
            a batch if the metric reads them at once.
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def on_pass(self, state: State) -> Way:
        """Reset the metric, report at the end; a pass that was cut short is not over."""
        self.metric.reset()
        yield
        if not state.pass_cut:
            state.report(self.metric.result())

    def on_batch(self, state: State) -> Way:
        """Take in the batch."""
        yield
        self.metric.update(state.outputs, state.batch)
