"""Strategies that say which task is next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from onion.errors import CompositionError, HookError
from onion.multitask.strategies.strategy import Strategy, TaskInfo, told
from onion.validation import is_number


class RoundRobin(Strategy):
    """One after the other, in the order in which they were given; nothing is left to chance."""

    def begin(self, tasks: Mapping[str, TaskInfo]) -> None:
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
            drawn before. A pass waits for every target, so when the onion is built the function is asked of many
            steps, far ones too, whether it comes to each. One that has no answer that far (an IndexError, a KeyError)
            is not held to it.

    Raises:
        CompositionError: ``function`` is none.
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
        """Ask the function; None where it has no answer."""
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
        """Remember which tasks there are."""
        self._tasks = tasks

    def weights(self, step: int, names: Sequence[str]) -> Mapping[str, float]:
        """Ask the function."""
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
            return f"the task {name!r}; there are {told(tasks)}"
        if not is_number(weight) or weight < 0:
            return f"the task {name!r} the weight {weight!r}; weights are finite numbers from 0"
    return None if any(weights.values()) else "no task a weight above 0"
