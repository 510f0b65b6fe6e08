"""Stop when a metric gets no better."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError
from onion.monitoring.best import Best, Mode
from onion.validation import is_number, is_whole

if TYPE_CHECKING:
    from onion.engine.runner import Runner

log = logging.getLogger("onion")


class EarlyStopping(RunnerItem):
    """Stop the run when a metric has not improved for some tests, counted as in Keras and Hugging Face.

    Put it outside the item that reports the metric.

    Args:
        monitor: a name in ``state.metrics``, such as ``tester.accuracy``.
        patience: number of values in a row that do not improve on the best before the run is stopped, >= 1; with 2, the
            second failure in a row stops it. Default 3.
        mode: ``max`` (default) or ``min``.
        min_delta: smallest change that counts as an improvement, >= 0. Default 0.

    Raises:
        CompositionError: an argument is out of range; or the item is inside the one that reports the metric, as far as
            the metric's name shows.
    """

    keep_for_inference = False
    transient = ("_warned",)

    def __init__(self, monitor: str, patience: int = 3, mode: Mode = "max", min_delta: float = 0.0) -> None:
        _refuse_wrong(monitor, patience, mode, min_delta)
        self.monitor, self.patience, self.mode, self.min_delta = monitor, patience, mode, min_delta
        self._warned = False
        self.reset()

    def reset(self) -> None:
        """Start without a best value."""
        self._best = Best(self.monitor, self.mode)
        self._failures = 0

    def check(self, runner: Runner) -> None:
        """Refuse a place inside the item that reports the metric, which its name (``tester.``) identifies."""
        for other in runner.around(self):
            if other.reports and self.monitor.startswith(f"{other.name}."):
                raise CompositionError(
                    f"{self.name} is inside {other.name}, which reports {self.monitor} after it, so it would stop "
                    "a step late; move it further out (before it)."
                )

    def initialize(self, state: State) -> None:
        """Stop a resumed run again that was stopped here."""
        self._stop_if_due(state)

    def on_pass(self, state: State) -> HookIterator:
        """Check what was reported on the way out of the pass."""
        yield
        self._check_value(state)
        self._best.tell_if_missing(state, self.name)

    def on_batch(self, state: State) -> HookIterator:
        """Check what was reported during the batch."""
        yield
        self._check_value(state)

    def _check_value(self, state: State) -> None:
        if not self._best.fresh(state):
            return
        self._warn_if_late(state)
        self._failures = 0 if self._best.better(state, self.min_delta) else self._failures + 1
        self._stop_if_due(state)

    def _warn_if_late(self, state: State) -> None:
        """Warn once if the metric is from an earlier step, which means it was reported after this ring had left."""
        reported = state.reported[self.monitor]
        if reported < state.step and not self._warned:
            self._warned = True
            log.warning(
                "%s: %s was reported at step %d and seen at step %d; put %s outside the item that reports it, or it "
                "stops late", self.name, self.monitor, reported, state.step, self.name,
            )  # fmt: skip

    def _stop_if_due(self, state: State) -> None:
        if self._failures >= self.patience:
            best = "None" if self._best.value is None else f"{self._best.value:.6g}"
            tests = f"{self._failures} test{'s' if self._failures != 1 else ''}"
            state.stop(f"{self.monitor} has not improved on {best} for {tests}")

    def state_dict(self) -> dict[str, Any]:
        """Return the best value and the failures since."""
        return {**self._best.state_dict(), "failures": self._failures}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the best value and the failures."""
        self._best.load_state_dict(saved)
        self._failures = int(saved["failures"])


def _refuse_wrong(monitor: object, patience: object, mode: object, min_delta: object) -> None:
    """Raise CompositionError for an argument out of range."""
    if not isinstance(monitor, str) or not monitor:
        raise CompositionError(
            f"EarlyStopping: monitor must be a metric's name such as 'tester.accuracy', got {monitor!r}."
        )
    if not is_whole(patience) or patience < 1:
        raise CompositionError(
            f"EarlyStopping: patience must be an integer >= 1, got {patience!r}; 1 stops at the first value that is "
            "not better."
        )
    if mode not in ("max", "min"):
        raise CompositionError(f"EarlyStopping: mode must be 'max' or 'min', got {mode!r}.")
    if not is_number(min_delta) or min_delta < 0:
        raise CompositionError(f"EarlyStopping: min_delta must be a number >= 0, got {min_delta!r}.")
