"""A search for the learning rate: short trainings of a copy, then the training itself goes on at the best one's rate.

python examples/lr_search.py            prints each rate that was chosen and then, as JSON, the error that it came to

Where noise is large, searches of few steps prefer too small rates (short-horizon bias, Wu et al. 2018).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from onion import DataProvider, GradientMachine, Observer, ParameterUpdater, Runner, RunnerItem, State, Trial
from onion.data import collate
from onion.device import to_tensors
from onion.testing import toy_examples, toy_network

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

EXAMPLES = toy_examples(512)


class RateSearch(RunnerItem):
    """Before every N-th batch, the first one included, try rates around the present one, and take the best."""

    def __init__(self, training: Callable[..., Runner], every: int = 40, steps: int = 8) -> None:
        self.training, self.every, self.steps = training, every, steps

    def on_batch(self, state: State) -> Iterator[None]:
        """Search, if it is time."""
        if state.step % self.every == 0:
            updater = state.runner[ParameterUpdater]
            now = updater.optimizer.get_lr()
            rate = self.best({rate: self.tried(rate, state) for rate in (now, now / 5, now * 5)})
            updater.set_learning_rate(rate)
            print(f"step {state.step}: rate {rate:g}")
        yield

    def tried(self, rate: float, state: State) -> float:
        """Train a copy at a rate for some steps from here; return the mean of their losses."""
        losses: list[float] = []
        ring = Observer(
            initialize=lambda trial: trial.runner[ParameterUpdater].set_learning_rate(rate),
            on_batch_end=lambda trial: losses.append(float(trial.loss)),
        )
        trial = self.training(deepcopy(state.runner[GradientMachine].network), Trial(), ring)
        trial.run(steps=state.step + self.steps, parent=state)
        return float(np.mean(losses))

    def best(self, losses: Mapping[float, float]) -> float:
        """Return the rate with the least loss; of those with the same, the first."""
        return min(losses, key=lambda rate: np.nan_to_num(losses[rate], nan=np.inf))


def training(network: Any, *rings: RunnerItem) -> Runner:
    """Return the onion of a training, at a rate that is far too small."""
    updater = ParameterUpdater(paddle.optimizer.Momentum(1e-4, parameters=network.parameters()))
    return Runner(*rings, DataProvider(EXAMPLES[:256], shuffle=True), updater, GradientMachine(network))


if __name__ == "__main__":
    errors, unseen = {}, to_tensors(collate(EXAMPLES[256:]))
    for name, rings in {"search": [RateSearch(training)], "first rate": []}.items():
        training(network := toy_network(), *rings).run(passes=20)
        errors[name] = float(network.loss(network(unseen), unseen))
    print(json.dumps({"example": "lr_search", "error": errors}))
