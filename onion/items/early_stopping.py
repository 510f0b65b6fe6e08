"""Stop when a metric gets no better."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onion.engine.state import State
from onion.errors import CompositionError
from onion.monitoring.best import Mode
from onion.monitoring.watcher import Watcher
from onion.validation import is_number, is_whole


class EarlyStopping(Watcher):
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

    def __init__(self, monitor: str, patience: int = 3, mode: Mode = "max", min_delta: float = 0.0) -> None:
        super().__init__(monitor, mode)
        _refuse_wrong(patience, min_delta)
        self.patience, self.min_delta = patience, min_delta
        self.reset()

    def reset(self) -> None:
        """Start without a best value."""
        super().reset()
        self._failures = 0

    def initialize(self, state: State) -> None:
        """Stop a resumed run again that was stopped here."""
        self._stop_if_due(state)

    def see(self, state: State) -> None:
        """Count the values in a row that are no better."""
        self._failures = 0 if self.best.better(state, self.min_delta) else self._failures + 1
        self._stop_if_due(state)

    def _stop_if_due(self, state: State) -> None:
        if self._failures >= self.patience:
            best = "None" if self.best.value is None else f"{self.best.value:.6g}"
            tests = f"{self._failures} test{'s' if self._failures != 1 else ''}"
            state.stop(f"{self.monitor} has not improved on {best} for {tests}")

    def state_dict(self) -> dict[str, Any]:
        """Return the best value and the failures since."""
        return {**super().state_dict(), "failures": self._failures}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the best value and the failures."""
        super().load_state_dict(saved)
        self._failures = int(saved["failures"])


def _refuse_wrong(patience: object, min_delta: object) -> None:
    """Raise CompositionError for an argument out of range."""
    if not is_whole(patience) or patience < 1:
        raise CompositionError(
            f"EarlyStopping: patience must be an integer >= 1, got {patience!r}; 1 stops at the first value that is "
            "not better."
        )
    if not is_number(min_delta) or min_delta < 0:
        raise CompositionError(f"EarlyStopping: min_delta must be a number >= 0, got {min_delta!r}.")
