"""The learning rate at which the loss falls fastest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.placement import UNREPEATED
from onion.engine.state import State
from onion.errors import CompositionError, HookError
from onion.items.parameter_updater import ParameterUpdater
from onion.validation import is_number, is_whole

if TYPE_CHECKING:
    from onion.engine.runner import Runner

REACH = 0.1
"""Share of the updates, to either side of one, whose losses give the slope there."""


class LearningRateFinder(RunnerItem):
    """Multiply the learning rate from update to update, and suggest one by the losses (Smith 2015, range test).

        finder = LearningRateFinder()
        Runner(finder, data, ParameterUpdater(optimizer), GradientMachine(network)).run()
        print(finder.suggestion)

    As in fastai's and Lightning's ``lr_find``, the rates grow exponentially, the run stops when the average of the loss
    diverges, and the suggestion is the rate at which the loss falls fastest. The run changes the network; give it a
    copy (``deepcopy(network)`` and an optimizer of its parameters). In a batch of another run, a ``Trial`` before the
    finder starts from that run's state and restores the random generators.

    The optimizer needs a constant learning rate. Put the finder outside the ParameterUpdater.

    Args:
        first: the first learning rate, more than 0. Default 1e-7.
        last: the last one, more than the first. Default 1.
        steps: updates from the first to the last, >= 2. Default 100.
        smoothing: weight of the earlier losses in the average, from 0 to below 1. Default 0.9.
        threshold: stop once the average is so many times its lowest value. Default 4.

    Attributes:
        losses: of the batches so far.
        smoothed: their averages, bias-corrected as in Adam (Kingma and Ba 2014).

    Raises:
        CompositionError: an argument is out of range, or there is not one ParameterUpdater inside.
        HookError: in a run: the optimizer has a schedule that changes the rate.
    """

    keep_for_inference = False
    place_rules = (UNREPEATED,)

    def __init__(
        self,
        first: float = 1e-7,
        last: float = 1.0,
        steps: int = 100,
        smoothing: float = 0.9,
        threshold: float = 4.0,
    ) -> None:
        _refuse_wrong(first, last, steps, smoothing, threshold)
        self.first, self.last, self.steps = float(first), float(last), steps
        self.smoothing, self.threshold = smoothing, threshold
        self.reset()

    def reset(self) -> None:
        """Start with no loss."""
        self.losses: list[float] = []
        self.smoothed: list[float] = []
        self._average = 0.0

    @property
    def rates(self) -> list[float]:
        """The learning rate of each loss."""
        growth = (self.last / self.first) ** (1 / (self.steps - 1))
        return [self.first * growth**step for step in range(len(self.losses))]

    @property
    def diverged(self) -> bool:
        """Whether the newest average is not finite, or too far above the lowest one."""
        newest = self.smoothed[-1] if self.smoothed else 0.0
        return not math.isfinite(newest) or newest > self.threshold * min(self.smoothed, default=0.0) > 0

    @property
    def suggestion(self) -> float | None:
        """The rate before the lowest average where a line through the losses around it falls fastest; None: none falls.

        The average itself is no guide, since it follows the losses by some updates, in which the rate grows.
        """
        finite = [loss for loss, average in zip(self.losses, self.smoothed, strict=True) if math.isfinite(average)]
        reach = max(1, round(REACH * self.steps))
        if len(finite) < 2 * reach + 1:
            return None
        lowest = int(np.argmin(self.smoothed[: len(finite)]))
        slopes = np.correlate(finite, np.arange(-reach, reach + 1), "valid")[: max(1, lowest - reach + 1)]
        steepest = int(np.argmin(slopes))
        return self.rates[reach + steepest] if slopes[steepest] < 0 else None

    def check(self, runner: Runner) -> None:
        """Require one ParameterUpdater inside."""
        count = len([item for item in runner.inside(self) if isinstance(item, ParameterUpdater)])
        if count != 1:
            raise CompositionError(
                f"{self.name} sets the learning rate of the ParameterUpdater inside it, of which there are {count}; "
                "put it outside one."
            )

    def initialize(self, state: State) -> None:
        """Stop a resumed run again that was at its end."""
        self._stop_if_due(state)

    def on_batch(self, state: State) -> HookIterator:
        """Set the rate on the way in, look at the loss on the way out."""
        assert state.runner is not None
        updater = next(item for item in state.runner.inside(self) if isinstance(item, ParameterUpdater))
        rate = self.first * (self.last / self.first) ** (len(self.losses) / (self.steps - 1))
        updater.set_learning_rate(rate)
        now = float(updater.optimizer.get_lr())
        if not math.isclose(now, rate):
            raise HookError(
                f"{self.name} has set the learning rate to {rate:g}, and the optimizer's schedule makes {now:g} of it; "
                "give the optimizer a constant rate."
            )
        yield
        if state.loss is not None:
            self._add(float(state.loss))
            self._stop_if_due(state)

    def _add(self, loss: float) -> None:
        self.losses.append(loss)
        self._average = self.smoothing * self._average + (1 - self.smoothing) * loss
        self.smoothed.append(self._average / (1 - self.smoothing ** len(self.losses)))

    def _stop_if_due(self, state: State) -> None:
        if self.diverged:
            state.stop(f"the loss diverged at the learning rate {self.rates[-1]:.3g}")
        elif len(self.losses) >= self.steps:
            state.stop(f"the learning rate {self.last:g} was reached")

    def state_dict(self) -> dict[str, Any]:
        """Return the losses."""
        return {"losses": np.array(self.losses, np.float64)}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the losses and their averages."""
        self.reset()
        for loss in np.asarray(saved["losses"]).tolist():
            self._add(loss)


def _refuse_wrong(first: object, last: object, steps: object, smoothing: object, threshold: object) -> None:
    """Raise CompositionError for an argument out of range."""
    if not (is_number(first) and is_number(last) and 0 < first < last):
        raise CompositionError(f"LearningRateFinder: needs 0 < first < last, got {first!r} and {last!r}.")
    if not (is_whole(steps) and steps >= 2):
        raise CompositionError(f"LearningRateFinder: steps must be an integer >= 2, got {steps!r}.")
    if not (is_number(smoothing) and 0 <= smoothing < 1):
        raise CompositionError(f"LearningRateFinder: smoothing must be a number >= 0 and < 1, got {smoothing!r}.")
    if not (is_number(threshold) and threshold > 1):
        raise CompositionError(f"LearningRateFinder: threshold must be a number > 1, got {threshold!r}.")
