"""The choice of the task that the next batch is of: a lot that is drawn by weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onion.multitask.strategies.strategy import Strategy, TaskInfo


class WeightedChoice:
    """Draws lots among tasks, by the weights that a strategy gives them, or that were set by hand.

    Args:
        strategy: gives the weights.

    Attributes:
        strategy: the same.
        chosen: the task that was drawn, for as long as its batch has not come: the strategy and the generator have
            moved on, so the choice is not made again. None: the next task has to be drawn.
        expected: how many batches of each task the weights have meant so far.
        latest: the weights as they were last time, or as they were set since.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.chosen: str | None = None
        self.expected: dict[str, float] = {}
        self.latest: dict[str, float] = {}
        self._by_hand: dict[str, float] = {}

    def begin(self, tasks: Mapping[str, TaskInfo], seed: int) -> None:
        """Begin with a run; the strategy does so too.

        Args:
            tasks: what the strategy is told of them.
            seed: of the lots.
        """
        self.expected = dict.fromkeys(tasks, 0.0)
        self._random = np.random.PCG64(seed)
        self.strategy.begin(tasks)

    def weights(self, step: int, names: Sequence[str]) -> dict[str, float]:
        """Return the weights above 0; the strategy is asked, so this is called once a draw.

        Args:
            step: how many batches were drawn before.
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
        # Of raw bits, not by numpy's Generator: that may draw otherwise in the version that resumes the run.
        return (int(self._random.random_raw()) >> 11) / 2**53

    def set_weight(self, task: str, weight: float) -> None:
        """Give a task this weight from now on, whatever the strategy says."""
        self._by_hand[task] = self.latest[task] = weight

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the lots and of the strategy, and what was expected and set, each as JSON's text."""
        return {
            "generator": json.dumps(self._random.state),
            "strategy": json.dumps(self.strategy.state_dict()),
            "planned": json.dumps(self.expected),
            "chosen": self.chosen,
            "by_hand": json.dumps(self._by_hand),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take it all back; ``begin`` was called before."""
        self._random.state = json.loads(saved["generator"])
        self.strategy.load_state_dict(json.loads(saved["strategy"]))
        self.expected = json.loads(saved["planned"])
        self.chosen = saved.get("chosen")
        self._by_hand = json.loads(saved.get("by_hand", "{}"))


def _pick(weights: Mapping[str, float], point: float) -> str:
    """Return the task on whose part of the line a point lies; the line has every weight side by side."""
    for name, weight in weights.items():  # noqa: B007 - the last stands where rounding leads beyond the end
        point -= weight
        if point < 0:
            break
    return name
