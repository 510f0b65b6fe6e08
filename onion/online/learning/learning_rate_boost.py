"""`LearningRateBoost`: a learning rate that is raised for some steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from onion.engine.item import RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError
from onion.validation import is_number, is_whole

if TYPE_CHECKING:
    from onion.engine.runner import Runner
    from onion.items.parameter_updater import ParameterUpdater


class LearningRateBoost(RunnerItem):
    """Multiply the learning rate for some steps when called, as by a DriftDetector; then restore it.

        raised = LearningRateBoost(updater, times=5, steps=200)
        Runner(..., DriftDetector(raised.begin), raised, updater, GradientMachine(network))

    Called again while it is raised, it stays so for that many steps from then on. A rate that is set otherwise in the
    meantime is left as it is. Of a schedule of ``onion.schedules`` the peak is raised.

    Args:
        updater: whose learning rate.
        times: what it is multiplied by; above 0. Default 5.
        steps: for how long. Default 100.

    Raises:
        CompositionError: an argument is out of its range; the updater is not of this onion; or its schedule has a rate
            of its own that cannot be set.
    """

    keep_for_inference = False

    def __init__(self, updater: ParameterUpdater, times: float = 5.0, steps: int = 100) -> None:
        if not (is_number(times) and times > 0):
            raise CompositionError(f"LearningRateBoost: times must be a number > 0, got {times!r}.")
        if not (is_whole(steps) and steps >= 1):
            raise CompositionError(f"LearningRateBoost: steps must be an integer >= 1, got {steps!r}.")
        self.updater, self.times, self.steps = updater, times, steps
        self.reset()

    def reset(self) -> None:
        """Begin unraised."""
        self._until: int | None = None
        self._usual = self._raised = 0.0

    def check(self, runner: Runner) -> None:
        """Require an updater of this runner whose rate can be set."""
        if not any(item is self.updater for item in runner.walk()):
            raise CompositionError(
                f"{self.name} raises the rate of an updater that is not in this runner; give it the one that is."
            )
        if not self.updater.adjustable():
            raise CompositionError(
                f"{self.name}: the schedule of {self.updater.name} sets the learning rate by itself; use one of "
                "onion.schedules, whose peak can be set."
            )

    def begin(self, state: State) -> None:
        """Raise it now."""
        if self._until is None:
            self._usual = self._rate()
            self._raised = self._usual * self.times
            self.updater.set_learning_rate(self._raised)
        self._until = state.step + self.steps

    def _rate(self) -> float:
        return self.updater.adjustable()["learning_rate"].get()

    def on_batch(self, state: State) -> None:
        """Set it back when its time is over."""
        if self._until is not None and state.step >= self._until:
            if self._rate() == self._raised:
                self.updater.set_learning_rate(self._usual)
            self.reset()

    def state_dict(self) -> dict[str, Any]:
        """Return until when it is raised, and the two rates; the updater saves the rate of now."""
        return {"until": self._until, "usual": self._usual, "raised": self._raised}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the state."""
        self._until, self._usual, self._raised = saved["until"], saved["usual"], saved["raised"]
