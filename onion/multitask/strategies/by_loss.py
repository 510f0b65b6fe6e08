"""The strategy that follows the tasks' recent losses."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from onion.errors import CompositionError
from onion.multitask.strategies.strategy import Strategy, TaskInfo
from onion.validation import is_number


@attrs.define
class _Course:
    """How a task's loss goes: at first, and lately (a moving average)."""

    first: float
    recent: float


class ByLoss(Strategy):
    """More of the tasks that learn slowly: in proportion to ``(recent loss / first loss) ** power``.

    Dividing by the first loss makes tasks comparable whose losses differ in scale (the inverse training rate of
    GradNorm, Chen et al. 2018, section 3.1). A task without a loss yet has the weight 1.

    A loss is read ``lag`` batches after its own, when the device has long finished it: so nobody waits, unless the
    device is that far behind. Costs that are not finite are passed over.

    Args:
        power: how strongly losses decide; 0: not at all. Default 1.
        rate: how much the newest loss counts in the moving average, from 0 to 1. Default 0.1.
        least: a ratio of losses counts as at least this, so that every task goes on, and as at most its inverse.
            Default 0.1.
        lag: in batches. Default 8.
    """

    def __init__(self, power: float = 1.0, rate: float = 0.1, least: float = 0.1, lag: int = 8) -> None:
        self.power, self.rate, self.least, self.lag = power, rate, least, lag

    def check(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Insist on arguments that make sense."""
        numbers = all(map(is_number, (self.power, self.rate, self.least))) and isinstance(self.lag, int)
        if not numbers or not (0 < self.rate <= 1 and 0 < self.least <= 1 and self.power >= 0 and self.lag >= 0):
            raise CompositionError(
                f"ByLoss: rate={self.rate!r} and least={self.least!r} must be numbers > 0 and <= 1, "
                f"power={self.power!r} a number >= 0 and lag={self.lag!r} an integer >= 0."
            )

    def begin(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Know no losses."""
        self._courses: dict[str, _Course] = {}
        self._waiting: deque[tuple[str, Any]] = deque()

    def weights(self, step: int, names: Sequence[str]) -> Mapping[str, float]:
        """Compare recent losses with first ones."""
        return {name: self._weight(self._courses.get(name)) for name in names}

    def _weight(self, course: _Course | None) -> float:
        if course is None or course.first <= 0:
            return 1.0
        return math.pow(min(1 / self.least, max(self.least, course.recent / course.first)), self.power)

    def note(self, task: str, loss: Any) -> None:
        """Put the loss aside, and read the one that has waited for long enough."""
        self._waiting.append((task, loss))
        if len(self._waiting) > self.lag:
            name, ready = self._waiting.popleft()
            self._read(name, float(ready))

    def _read(self, name: str, loss: float) -> None:
        if not math.isfinite(loss):
            return
        course = self._courses.setdefault(name, _Course(loss, loss))
        course.recent += self.rate * (loss - course.recent)

    def state_dict(self) -> dict[str, Any]:
        """Return the averages, and what waits to be read."""
        courses = {name: [course.first, course.recent] for name, course in self._courses.items()}
        return {"courses": courses, "waiting": [[name, float(loss)] for name, loss in self._waiting]}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take them back."""
        self._courses = {name: _Course(*values) for name, values in saved["courses"].items()}
        self._waiting = deque((name, loss) for name, loss in saved["waiting"])
