"""Strategies that give every task a share of the batches."""

from __future__ import annotations

from collections.abc import Mapping

from onion.errors import CompositionError
from onion.multitask.strategies.strategy import Fixed, TaskInfo, told
from onion.validation import is_number


class MixRatio(Fixed):
    """In proportion to the tasks' ``mix_ratio``, as PALM does."""

    def weigh(self, tasks: Mapping[str, TaskInfo]) -> dict[str, float]:
        """Return the ratios."""
        return {name: facts.mix_ratio for name, facts in tasks.items()}


class Uniform(Fixed):
    """All tasks alike."""

    def weigh(self, tasks: Mapping[str, TaskInfo]) -> dict[str, float]:
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

    def check(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Insist on a temperature, and on a size of every task."""
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

    Raises:
        CompositionError: ``weights`` is no dict.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        if not isinstance(weights, Mapping):
            raise CompositionError(
                f"Weights takes one number per task, Weights({{'name': 1.0, ...}}), not a {type(weights).__name__}."
            )
        self.given = dict(weights)

    def check(self, tasks: Mapping[str, TaskInfo]) -> None:
        """Insist on a weight for every task and for no other."""
        if self.given.keys() != tasks.keys():
            raise CompositionError(f"Weights are given for {told(self.given)}; the tasks are {told(tasks)}.")
        super().check(tasks)

    def weigh(self, tasks: Mapping[str, TaskInfo]) -> dict[str, float]:
        """Return the numbers."""
        return {name: self.given[name] for name in tasks}
