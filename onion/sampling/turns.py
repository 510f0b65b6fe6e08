"""Strategies that say which task is next."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from onion.errors import CompositionError, HookError
from onion.sampling.strategy import Facts, Strategy, told


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
            return f"the task {name!r}; there are {told(tasks)}"
        if not 0 <= weight < math.inf:
            return f"the task {name!r} the weight {weight!r}; weights are finite numbers from 0"
    return None if any(weights.values()) else "no task a weight above 0"
