"""The random choice of the next task by weights, and the check that it ends a pass."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from onion.multitask.strategies import Strategy, TaskInfo

LONGEST = 1000
"""A pass that needs more than this many times its planned batches counts as endless."""

CLOSE = 1000
"""Steps that are followed one by one; later strides are a thousandth of the steps before."""


def never_finishes(
    strategy: Strategy, tasks: Mapping[str, TaskInfo], planned: Mapping[str, int], targets: Collection[str], stop: bool
) -> str | None:
    """Return a target that the first pass would never finish, or None if there is none or it cannot be known.

    Args:
        strategy: followed as far as ``Strategy.foresee`` knows.
        tasks: the facts about each task.
        planned: batches of each task in a pass.
        targets: the tasks that the pass waits for.
        stop: whether a target that has its batches is not drawn any more.
    """
    lacking = {name: float(planned[name]) for name in targets}
    step, end = 0, LONGEST * sum(planned.values())
    while waiting := [name for name, count in lacking.items() if count > 0]:
        if step >= end:
            return waiting[0]
        weights = strategy.foresee(step, tasks)
        shares = _shares(weights or {}, [name for name in tasks if not stop or lacking.get(name, 1) > 0])
        if not shares:
            return None
        stride = 1 + step // CLOSE
        for name in waiting:
            lacking[name] -= stride * shares.get(name, 0.0)
        step += stride
    return None


def _shares(weights: Mapping[str, float], names: Collection[str]) -> dict[str, float]:
    """Return the share of each of these tasks in their weights; nothing if all are 0."""
    total = sum(weights.get(name, 0.0) for name in names)
    return {name: weights.get(name, 0.0) / total for name in names} if total else {}


class WeightedChoice:
    """Draw tasks at random, by the weights of a strategy or those set with ``set_weight``.

    Args:
        strategy: gives the weights.

    Attributes:
        strategy: as given.
        chosen: the task that was drawn and whose batch was not read yet, which is not drawn again. None: the next task
            has to be drawn.
        expected: the expected number of batches of each task so far.
        latest: the weights of the latest choice, or those set since.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.chosen: str | None = None
        self.expected: dict[str, float] = {}
        self.latest: dict[str, float] = {}
        self._by_hand: dict[str, float] = {}

    def begin(self, tasks: Mapping[str, TaskInfo], seed: int) -> None:
        """Start a run, and the strategy.

        Args:
            tasks: the facts for the strategy.
            seed: of the random choices.
        """
        self.expected = dict.fromkeys(tasks, 0.0)
        self._random = np.random.PCG64(seed)
        self.strategy.begin(tasks)

    def weights(self, step: int, names: Sequence[str]) -> dict[str, float]:
        """Return the weights above 0; this calls the strategy, so it must be called once per draw.

        Args:
            step: the number of batches drawn before.
            names: the tasks that may be drawn.
        """
        given = self.latest = {**self.strategy.weights(step, names), **self._by_hand}
        return {name: given[name] for name in names if given.get(name, 0.0) > 0}

    def draw(self, weights: Mapping[str, float]) -> str:
        """Choose one of these tasks, by their weights."""
        total = sum(weights.values())
        for name, weight in weights.items():
            self.expected[name] += weight / total
        self.chosen = _pick(weights, total * self._chance())
        return self.chosen

    def _chance(self) -> float:
        # From raw bits: numpy's Generator may draw differently in another version, which may resume the run.
        return (int(self._random.random_raw()) >> 11) / 2**53

    def set_weight(self, task: str, weight: float) -> None:
        """Use this weight for a task from now on, instead of the strategy's."""
        self._by_hand[task] = self.latest[task] = weight

    def state_dict(self) -> dict[str, Any]:
        """Return the state of generator and strategy, the expected numbers and the set weights, each as JSON."""
        return {
            "generator": json.dumps(self._random.state),
            "strategy": json.dumps(self.strategy.state_dict()),
            "planned": json.dumps(self.expected),
            "chosen": self.chosen,
            "by_hand": json.dumps(self._by_hand),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore them; ``begin`` was called before."""
        self._random.state = json.loads(saved["generator"])
        self.strategy.load_state_dict(json.loads(saved["strategy"]))
        self.expected = json.loads(saved["planned"])
        self.chosen = saved.get("chosen")
        self._by_hand = json.loads(saved.get("by_hand", "{}"))


def _pick(weights: Mapping[str, float], point: float) -> str:
    """Return the task whose segment of the line contains a point; the segments are the weights, side by side."""
    for name, weight in weights.items():  # noqa: B007 - by rounding, the point may be beyond the last
        point -= weight
        if point < 0:
            break
    return name
