"""Strategies that choose the task of the next batch, for a TaskSampler.

A strategy gives every task a weight; the sampler draws in proportion to the weights. A deterministic strategy gives a
weight to one task only. To write your own, subclass Strategy and override ``weights``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from onion.errors import CompositionError, HookError
from onion.validation import is_number

__all__ = [
    "ByLoss",
    "BySize",
    "ByStep",
    "Fixed",
    "MixRatio",
    "RoundRobin",
    "Strategy",
    "TaskInfo",
    "Temperature",
    "Uniform",
    "Weights",
]


@attrs.frozen
class TaskInfo:
    """The facts about a task that a strategy may use.

    Attributes:
        mix_ratio: planned batches per batch of the reference task.
        batches: batches per pass; None: a stream.
    """

    mix_ratio: float
    batches: int | None


class Strategy(ABC):
    """The choice of the task of the next batch. Only ``weights`` has to be overridden."""

    stages: Sequence[Mapping[str, int]] | None = None
    """The exact batches of each task in each pass, which ``weights`` keeps to, and after which the run ends. None: a
    pass is one over the reference task, by PALM's rule."""

    def check(self, tasks: Mapping[str, TaskInfo]) -> None:  # noqa: B027  doing nothing is the default
        """Raise CompositionError if this strategy cannot work with these tasks, and change nothing."""

    def begin(self, tasks: Mapping[str, TaskInfo]) -> None:  # noqa: B027  doing nothing is the default
        """Initialize what a run changes, as new objects: each run has a shallow copy of the strategy."""

    @abstractmethod
    def weights(self, step: int, names: Sequence[str]) -> Mapping[str, float]:
        """Return weights >= 0, one of them above 0; those of tasks not in ``names`` are ignored.

        It is called exactly once per batch.

        Args:
            step: the number of batches drawn before.
            names: the tasks that may be drawn.
        """

    def foresee(self, step: int, tasks: Mapping[str, TaskInfo]) -> Mapping[str, float] | None:
        """Return the weights of a step if they depend on the step only; None (default): they depend on the run.

        It is called when the runner is built, also for distant steps, to refuse a target that is never finished.

        Raises:
            CompositionError: the weights are invalid.
        """
        return None

    def note(self, task: str, loss: Any) -> None:  # noqa: B027  doing nothing is the default
        """Receive the loss of a finished batch; reading its value at once would wait for the device."""

    def readings(self, drawn: Mapping[str, int]) -> dict[str, float]:
        """Return figures to log, given the number of batches drawn of each task."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs, as JSON values."""
        return {}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:  # noqa: B027  doing nothing is the default
        """Restore it; ``begin`` was called before."""


class Fixed(Strategy):
    """Base class of strategies whose weights never change."""

    @abstractmethod
    def weigh(self, tasks: Mapping[str, TaskInfo]) -> dict[str, float]:
        """Return the weights."""

    def check(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Refuse weights with which a task is never drawn."""
        for name, weight in self.weigh(tasks).items():
            if not is_number(weight) or weight <= 0:
                raise CompositionError(
                    f"{type(self).__name__} gives the task {name!r} the weight {weight!r}, so it would never be "
                    "finished; give it a number above 0, or leave the task out."
                )

    def foresee(self, step: int, tasks: Mapping[str, TaskInfo]) -> Mapping[str, float]:
        """Return the weights."""
        return self.weigh(tasks)

    def begin(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Compute the weights once."""
        self._weights = self.weigh(tasks)

    def weights(self, step: int, names: Sequence[str]) -> Mapping[str, float]:
        """Return the weights."""
        return self._weights


def _listed(names: Mapping[str, Any]) -> str:
    """Return the names for a message."""
    return ", ".join(names) or "none"


# -- fixed shares -----------------------------------------------------------------------------------------------------


class MixRatio(Fixed):
    """In proportion to the tasks' ``mix_ratio``, as PALM does."""

    def weigh(self, tasks: Mapping[str, TaskInfo]) -> dict[str, float]:
        """Return the ratios."""
        return {name: facts.mix_ratio for name, facts in tasks.items()}


class Uniform(Fixed):
    """Equal weights."""

    def weigh(self, tasks: Mapping[str, TaskInfo]) -> dict[str, float]:
        """Return 1 for each."""
        return dict.fromkeys(tasks, 1.0)


class Temperature(Fixed):
    """In proportion to ``size ** (1 / temperature)`` (mT5, Xue et al. 2021, section 3.1, has the exponent 0.3).

    The size is the number of batches per pass. With temperature 1 all tasks finish their data at the same time; the
    higher it is, the more often small tasks are drawn.

    Args:
        temperature: above 0. Default 2.
    """

    def __init__(self, temperature: float = 2.0) -> None:
        self.temperature = temperature

    def check(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Require a temperature above 0, and a size of every task."""
        if not is_number(self.temperature) or self.temperature <= 0:
            raise CompositionError(
                f"Temperature: temperature must be > 0, got {self.temperature!r}; for equal shares use Uniform()."
            )
        for name, facts in tasks.items():
            if facts.batches is None:
                raise CompositionError(
                    f"{type(self).__name__} needs the size of the task {name!r}, which is a stream; use a list, or "
                    "another strategy."
                )
        super().check(tasks)

    def weigh(self, tasks: Mapping[str, TaskInfo]) -> dict[str, float]:
        """Return powers of the sizes, of which the largest is 1."""
        sizes = {name: facts.batches or 0 for name, facts in tasks.items()}
        return {name: (size / max(sizes.values())) ** (1 / self.temperature) for name, size in sizes.items()}


class BySize(Temperature):
    """In proportion to size: all tasks finish their data at the same time."""

    def __init__(self) -> None:
        super().__init__(1.0)


class Weights(Fixed):
    """In proportion to given numbers.

    Args:
        weights: task -> its weight, above 0.

    Raises:
        CompositionError: ``weights`` is not a dict.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        if not isinstance(weights, Mapping):
            raise CompositionError(
                f"Weights takes one number per task, Weights({{'name': 1.0, ...}}), not a {type(weights).__name__}."
            )
        self.given = dict(weights)

    def check(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Require a weight for every task and for no other."""
        if self.given.keys() != tasks.keys():
            raise CompositionError(f"Weights are given for {_listed(self.given)}; the tasks are {_listed(tasks)}.")
        super().check(tasks)

    def weigh(self, tasks: Mapping[str, TaskInfo]) -> dict[str, float]:
        """Return the numbers."""
        return {name: self.given[name] for name in tasks}


# -- turns ------------------------------------------------------------------------------------------------------------


class RoundRobin(Strategy):
    """One task after the other, in the given order."""

    def begin(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Start with the first."""
        self._names, self._next = list(tasks), 0

    def weights(self, step: int, names: Sequence[str]) -> Mapping[str, float]:
        """Return the next that may be drawn."""
        turns = [*self._names[self._next :], *self._names[: self._next]]
        chosen = next(name for name in turns if name in names)
        self._next = (self._names.index(chosen) + 1) % len(self._names)
        return {chosen: 1.0}

    def state_dict(self) -> dict[str, Any]:
        """Return the next turn."""
        return {"next": self._next}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore it."""
        self._next = saved["next"]


Answer: TypeAlias = "str | Mapping[str, float]"
"""The name of a task, or weights of tasks; one that is not named has the weight 0."""


class ByStep(Strategy):
    """By a function of the step; it must depend on nothing else, or a resumed run would differ.

        ByStep(lambda step: {"mrc": 1.0, "mlm": 0.99**step})  # less and less of mlm

    Args:
        function: ``function(step)`` returns the name of a task, or weights by name. The step is the number of batches
            drawn before. When the runner is built, the function is called for many steps, distant ones too, to check
            that every target is finished; this check ends where it raises an IndexError or a KeyError.

    Raises:
        CompositionError: ``function`` is not callable.
    """

    def __init__(self, function: Callable[[int], Answer]) -> None:
        if not callable(function):
            raise CompositionError(
                f"ByStep takes a function, ByStep(lambda step: ...), not a {type(function).__name__}."
            )
        self.function = function

    def check(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Try the function once."""
        self._answer(0, tasks)

    def foresee(self, step: int, tasks: Mapping[str, TaskInfo]) -> Mapping[str, float] | None:
        """Call the function; None if it has no answer."""
        try:
            return self._answer(step, tasks)
        except LookupError:
            return None

    def _answer(self, step: int, tasks: Mapping[str, TaskInfo]) -> Mapping[str, float]:
        answer = self.function(step)
        if complaint := _complaint(answer, tasks):
            raise CompositionError(f"ByStep: at step {step} the function gave {complaint}.")
        return _weights(answer)

    def begin(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Store the tasks."""
        self._tasks = tasks

    def weights(self, step: int, names: Sequence[str]) -> Mapping[str, float]:
        """Call the function."""
        answer = self.function(step)
        if complaint := _complaint(answer, self._tasks):
            raise HookError(f"ByStep: at step {step} the function gave {complaint}.")
        return _weights(answer)


def _weights(answer: Answer) -> Mapping[str, float]:
    return {answer: 1.0} if isinstance(answer, str) else answer


def _complaint(answer: Any, tasks: Mapping[str, TaskInfo]) -> str | None:
    """Return what is wrong with a function's answer, or None."""
    weights = _weights(answer)
    if not isinstance(weights, Mapping):
        return f"a {type(answer).__name__}; it gives the name of a task, or a dict of weights by name"
    for name, weight in weights.items():
        if name not in tasks:
            return f"the task {name!r}; there are {_listed(tasks)}"
        if not is_number(weight) or weight < 0:
            return f"the task {name!r} the weight {weight!r}; weights are finite numbers from 0"
    return None if any(weights.values()) else "no task a weight above 0"


# -- by loss ----------------------------------------------------------------------------------------------------------


@attrs.define
class _Course:
    """The loss of a task: the first one, and a moving average."""

    first: float
    recent: float


class ByLoss(Strategy):
    """Prefer tasks that learn slowly: weights are ``(recent loss / first loss) ** power``.

    Dividing by the first loss makes tasks comparable whose losses differ in scale (the inverse training rate of
    GradNorm, Chen et al. 2018, section 3.1). A task without a loss yet has the weight 1.

    A loss is read ``lag`` batches after its own, so that the run rarely waits for the device. Losses that are not
    finite are ignored.

    Args:
        power: the influence of losses; 0: none. Default 1.
        rate: the weight of the newest loss in the moving average, from 0 to 1. Default 0.1.
        least: the lower bound of ratios of losses, so that every task is drawn; its inverse is the upper bound. Default
            0.1.
        lag: in batches. Default 8.
    """

    def __init__(self, power: float = 1.0, rate: float = 0.1, least: float = 0.1, lag: int = 8) -> None:
        self.power, self.rate, self.least, self.lag = power, rate, least, lag

    def check(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Validate the arguments."""
        numbers = all(map(is_number, (self.power, self.rate, self.least))) and isinstance(self.lag, int)
        if not numbers or not (0 < self.rate <= 1 and 0 < self.least <= 1 and self.power >= 0 and self.lag >= 0):
            raise CompositionError(
                f"ByLoss: rate={self.rate!r} and least={self.least!r} must be numbers > 0 and <= 1, "
                f"power={self.power!r} a number >= 0 and lag={self.lag!r} an integer >= 0."
            )

    def begin(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Forget all losses."""
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
        """Store the loss, and read the one from ``lag`` batches before."""
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
        """Return the averages, and the losses that are not read yet."""
        courses = {name: [course.first, course.recent] for name, course in self._courses.items()}
        return {"courses": courses, "waiting": [[name, float(loss)] for name, loss in self._waiting]}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore them."""
        self._courses = {name: _Course(*values) for name, values in saved["courses"].items()}
        self._waiting = deque((name, loss) for name, loss in saved["waiting"])
