"""Which task the next batch is of: strategies for a TaskSampler.

A strategy gives every task a weight; the sampler draws in proportion to the weights. One that always knows which task
is next gives that one alone a weight. To write your own, subclass Strategy and override ``weights``.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from onion.errors import CompositionError, HookError


@attrs.frozen
class Facts:
    """What a strategy is told of a task.

    Attributes:
        mix_ratio: how much of it is wanted, in passes over the reference task.
        batches: its batches a pass; None: a stream, where nobody knows.
    """

    mix_ratio: float
    batches: int | None


class Strategy:
    """How the task of the next batch is chosen. Nothing but ``weights`` has to be overridden."""

    def check(self, tasks: Mapping[str, Facts]) -> None:
        """Raise CompositionError if this strategy cannot work with these tasks; it changes nothing."""

    def begin(self, tasks: Mapping[str, Facts]) -> None:
        """Begin anew."""

    def weights(self, step: int, names: Sequence[str]) -> Mapping[str, float]:
        """Return weights from 0, of which one is above 0; those of tasks that are not asked for do not matter.

        It is called exactly once a batch.

        Args:
            step: how many batches were drawn before this one.
            names: the tasks that may be drawn.
        """
        raise NotImplementedError

    def note(self, task: str, cost: Any) -> None:
        """Take in the cost of a finished batch; reading it at once would wait for the device."""

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs, as JSON values."""
        return {}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take it back; ``begin`` was called before."""


class Fixed(Strategy):
    """The base of strategies whose weights never change."""

    def weigh(self, tasks: Mapping[str, Facts]) -> dict[str, float]:
        """Return the weights."""
        raise NotImplementedError

    def check(self, tasks: Mapping[str, Facts]) -> None:
        """Refuse weights by which some task is never drawn."""
        for name, weight in self.weigh(tasks).items():
            if not 0 < weight < math.inf:
                raise CompositionError(
                    f"{type(self).__name__} gives the task {name!r} the weight {weight!r}, so it would never be "
                    "finished; give it a number above 0, or leave the task out."
                )

    def begin(self, tasks: Mapping[str, Facts]) -> None:
        """Weigh the tasks once."""
        self._weights = self.weigh(tasks)

    def weights(self, step: int, names: Sequence[str]) -> Mapping[str, float]:
        """Return what ``weigh`` gave."""
        return self._weights


class MixRatio(Fixed):
    """In proportion to the tasks' ``mix_ratio``, as PALM does."""

    def weigh(self, tasks: Mapping[str, Facts]) -> dict[str, float]:
        """Return the ratios."""
        return {name: facts.mix_ratio for name, facts in tasks.items()}


class Uniform(Fixed):
    """All tasks alike."""

    def weigh(self, tasks: Mapping[str, Facts]) -> dict[str, float]:
        """Return 1 for each."""
        return dict.fromkeys(tasks, 1.0)


class Temperature(Fixed):
    """In proportion to ``size ** (1 / temperature)`` (mT5, Xue et al. 2021, section 3.1, has the exponent 0.3).

    The size is the number of batches a pass. So with temperature 1 all tasks get through their data at the same time;
    the higher it is, the more small tasks are seen.

    Args:
        temperature: above 0. Default 2.
    """

    def __init__(self, temperature: float = 2.0) -> None:
        self.temperature = temperature

    def check(self, tasks: Mapping[str, Facts]) -> None:
        """Insist on a temperature, and on a size of every task."""
        if not self.temperature > 0:
            raise CompositionError(f"Temperature: {self.temperature!r} is not above 0.")
        for name, facts in tasks.items():
            if facts.batches is None:
                raise CompositionError(
                    f"{type(self).__name__} needs the size of the task {name!r}, which is a stream; give it a list, or "
                    "take another strategy."
                )
        super().check(tasks)

    def weigh(self, tasks: Mapping[str, Facts]) -> dict[str, float]:
        """Return powers of the sizes, the largest of them 1."""
        sizes = {name: facts.batches or 0 for name, facts in tasks.items()}
        return {name: (size / max(sizes.values())) ** (1 / self.temperature) for name, size in sizes.items()}


class BySize(Temperature):
    """In proportion to size: all tasks get through their data at the same time."""

    def __init__(self) -> None:
        super().__init__(1.0)


class Weights(Fixed):
    """In proportion to given numbers.

    Args:
        weights: task -> its weight, above 0.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self.given = dict(weights)

    def check(self, tasks: Mapping[str, Facts]) -> None:
        """Insist on a weight for every task and for no other."""
        if self.given.keys() != tasks.keys():
            raise CompositionError(f"Weights are given for {_told(self.given)}; the tasks are {_told(tasks)}.")
        super().check(tasks)

    def weigh(self, tasks: Mapping[str, Facts]) -> dict[str, float]:
        """Return the numbers."""
        return {name: self.given[name] for name in tasks}


class RoundRobin(Strategy):
    """One after the other, in the order in which they were given; nothing is left to chance."""

    def begin(self, tasks: Mapping[str, Facts]) -> None:
        """Begin with the first."""
        self._names, self._next = list(tasks), 0

    def weights(self, step: int, names: Sequence[str]) -> Mapping[str, float]:
        """Return the next that may be drawn."""
        turns = [*self._names[self._next :], *self._names[: self._next]]
        chosen = next(name for name in turns if name in names)
        self._next = (self._names.index(chosen) + 1) % len(self._names)
        return {chosen: 1.0}

    def state_dict(self) -> dict[str, Any]:
        """Return whose turn it is."""
        return {"next": self._next}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take it back."""
        self._next = saved["next"]


Answer: TypeAlias = "str | Mapping[str, float]"
"""The name of a task, or weights of tasks; one that is not named has the weight 0."""


class ByStep(Strategy):
    """As a function says; it depends on the step alone, or a resumed run would differ.

        ByStep(lambda step: {"mrc": 1.0, "mlm": 0.99**step})  # less and less of mlm

    Args:
        function: ``function(step)`` gives the name of a task, or weights by name. The step is the number of batches
            drawn before. Whether it ever comes to a task cannot be told; a pass waits for every target.
    """

    def __init__(self, function: Callable[[int], Answer]) -> None:
        self.function = function

    def check(self, tasks: Mapping[str, Facts]) -> None:
        """Try the function once."""
        if complaint := _complaint(self.function(0), tasks):
            raise CompositionError(f"ByStep: at step 0 the function gave {complaint}.")

    def begin(self, tasks: Mapping[str, Facts]) -> None:
        """Remember which tasks there are."""
        self._tasks = tasks

    def weights(self, step: int, names: Sequence[str]) -> Mapping[str, float]:
        """Ask the function."""
        answer = self.function(step)
        if complaint := _complaint(answer, self._tasks):
            raise HookError(f"ByStep: at step {step} the function gave {complaint}.")
        return {answer: 1.0} if isinstance(answer, str) else answer


def _complaint(answer: Any, tasks: Mapping[str, Facts]) -> str | None:
    """Return what is wrong with a function's answer, or None."""
    weights = {answer: 1.0} if isinstance(answer, str) else answer
    if not isinstance(weights, Mapping):
        return f"a {type(answer).__name__}; it gives the name of a task, or a dict of weights by name"
    for name, weight in weights.items():
        if name not in tasks:
            return f"the task {name!r}; there are {_told(tasks)}"
        if not 0 <= weight < math.inf:
            return f"the task {name!r} the weight {weight!r}; weights are finite numbers from 0"
    return None if any(weights.values()) else "no task a weight above 0"


@attrs.define
class _Course:
    """How a task's cost goes: at first, and lately (a moving average)."""

    first: float
    recent: float


class ByCost(Strategy):
    """More of the tasks that learn slowly: in proportion to ``(recent cost / first cost) ** power``.

    Dividing by the first cost makes tasks comparable whose costs differ in scale (the inverse training rate of
    GradNorm, Chen et al. 2018, section 3.1). A task without a cost yet has the weight 1.

    A cost is read ``lag`` batches after its own, when the device has long finished it: so nobody waits, unless the
    device is that far behind. Costs that are not finite are passed over.

    Args:
        power: how strongly costs decide; 0: not at all. Default 1.
        rate: how much the newest cost counts in the moving average, from 0 to 1. Default 0.1.
        least: a ratio of costs counts as at least this, so that every task goes on, and as at most its inverse. Default
            0.1.
        lag: in batches. Default 8.
    """

    def __init__(self, power: float = 1.0, rate: float = 0.1, least: float = 0.1, lag: int = 8) -> None:
        self.power, self.rate, self.least, self.lag = power, rate, least, lag

    def check(self, tasks: Mapping[str, Facts]) -> None:
        """Insist on arguments that make sense."""
        if not (0 < self.rate <= 1 and 0 < self.least <= 1 and self.power >= 0 and self.lag >= 0):
            raise CompositionError(
                f"ByCost: rate={self.rate} and least={self.least} are above 0 and at most 1, power={self.power} and "
                f"lag={self.lag} from 0."
            )

    def begin(self, tasks: Mapping[str, Facts]) -> None:
        """Know no costs."""
        self._courses: dict[str, _Course] = {}
        self._waiting: deque[tuple[str, Any]] = deque()

    def weights(self, step: int, names: Sequence[str]) -> Mapping[str, float]:
        """Compare recent costs with first ones."""
        return {name: self._weight(self._courses.get(name)) for name in names}

    def _weight(self, course: _Course | None) -> float:
        if course is None or course.first <= 0:
            return 1.0
        return math.pow(min(1 / self.least, max(self.least, course.recent / course.first)), self.power)

    def note(self, task: str, cost: Any) -> None:
        """Put the cost aside, and read the one that has waited for long enough."""
        self._waiting.append((task, cost))
        if len(self._waiting) > self.lag:
            name, ready = self._waiting.popleft()
            self._read(name, float(ready))

    def _read(self, name: str, cost: float) -> None:
        if not math.isfinite(cost):
            return
        course = self._courses.setdefault(name, _Course(cost, cost))
        course.recent += self.rate * (cost - course.recent)

    def state_dict(self) -> dict[str, Any]:
        """Return the averages, and what waits to be read."""
        courses = {name: [course.first, course.recent] for name, course in self._courses.items()}
        return {"courses": courses, "waiting": [[name, float(cost)] for name, cost in self._waiting]}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take them back."""
        self._courses = {name: _Course(*values) for name, values in saved["courses"].items()}
        self._waiting = deque((name, cost) for name, cost in saved["waiting"])


def _told(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "none"
