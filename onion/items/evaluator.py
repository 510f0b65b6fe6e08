"""Metrics over a pass."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, SupportsFloat, runtime_checkable

from onion.data.source import named
from onion.device import to_arrays, to_tensors
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError
from onion.messages import shown

if TYPE_CHECKING:
    from onion.distributed.group import Group

log = logging.getLogger("onion")

METHODS = ("reset", "update", "result")


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

    Raises:
        CompositionError: the metric lacks a method, as those of ``paddle.metric`` do, or is a class; or, at the end of
            a pass, its result is not numbers by name.
    """

    keep_for_inference = False
    reports = True

    def __init__(self, metric: Metric) -> None:
        _refuse_other(metric)
        self.metric = metric
        self._loaded = self._trains = False
        self._pieces: dict[int, tuple[Any, Any]] = {}

    def on_pass(self, state: State) -> HookIterator:
        """Reset the metric; report its figures at the end unless the pass was cut short."""
        loaded, self._loaded = self._loaded, False
        self._pieces = {}
        self._trains = state.runner is not None and any(each.computes_gradients for each in state.runner.inside(self))
        if state.batch_id == 0 or not loaded:
            self.metric.reset()
        if state.batch_id > 0 and not loaded:
            log.warning("%s: resumed in the middle of a pass, and %s; it measures the rest", self.name, self._lack())
        yield
        if not state.pass_cut:
            state.report(self._figures())

    def _figures(self) -> Mapping[str, float]:
        found = self.metric.result()
        told = f"{self.name}: result() of {type(self.metric).__name__}"
        if not isinstance(found, Mapping):
            raise CompositionError(
                f"{told} must return figures by name, such as {{'accuracy': 0.5}}, got {shown(found)}."
            )
        if wrong := [name for name, value in found.items() if not isinstance(value, SupportsFloat)]:
            raise CompositionError(f"{told}: {wrong[0]!r} must be a number, got {shown(found[wrong[0]])}.")
        return found

    def _lack(self) -> str:
        saved = isinstance(self.metric, SavedMetric)
        return "the checkpoint has no state of its metric" if saved else "its metric has no state_dict"

    def on_batch(self, state: State) -> HookIterator:
        """Add the batch, unless it has no outputs because an item inside skipped it."""
        if self.group is None:
            yield
            if state.outputs is not None:
                self.metric.update(state.outputs, state.batch)
        elif self.group.is_in_piece(state):  # an item around this one runs it for each piece
            yield
            self._note(state, self.group)
            self._measure_after_last(self.group)
        elif self._trains:  # an item inside this one runs the pieces
            with self.group.watched(state, partial(self._note, state, self.group)):
                yield
            self._measure(self.group)
        else:
            for _ in self.group.each_piece(state):
                yield
                self._note(state, self.group)
                self._measure_after_last(self.group)

    def _note(self, state: State, group: Group) -> None:
        """Keep what came of a piece; of one that is run again, what came of it last."""
        piece = group.piece
        assert piece is not None
        if piece.weight and state.outputs is not None:
            self._pieces[piece.number] = to_arrays(state.outputs), state.batch

    def _measure_after_last(self, group: Group) -> None:
        if group.is_last_piece:
            self._measure(group)

    def _measure(self, group: Group) -> None:
        """Add the pieces of all ranks, in order."""
        own, self._pieces = self._pieces, {}
        pieces = {number: piece for each in group.gathered(own) for number, piece in each.items()}
        for _, (outputs, batch) in sorted(pieces.items()):
            self.metric.update(to_tensors(outputs), batch)

    def state_dict(self) -> dict[str, Any]:
        """Return the metric's sums, if it has a ``state_dict``."""
        return self.metric.state_dict() if isinstance(self.metric, SavedMetric) else {}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the metric's sums."""
        if isinstance(self.metric, SavedMetric):
            self.metric.load_state_dict(saved)
            self._loaded = True


def _refuse_other(metric: Any) -> None:
    if isinstance(metric, type):
        raise CompositionError(f"Evaluator takes a metric, not a class: Evaluator({metric.__name__}(...)).")
    if missing := [name for name in METHODS if not callable(getattr(metric, name, None))]:
        needed = "a metric has reset(), update(outputs, batch) and result()"
        remedy = "; the notebook docs/tutorials/network.ipynb wraps one of Paddle's"
        told = f"Evaluator: {type(metric).__name__} has no {missing[0]}(); {needed}"
        raise CompositionError(f"{told}{remedy if named(metric, 'paddle.', 'Metric') else ''}.")
