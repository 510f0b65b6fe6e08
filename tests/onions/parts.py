"""What the onions of the catalogue are made of: a network that draws random numbers, its data, its tests."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from onion import DataProvider, Evaluator, Forward, GradientMachine, Logger, ParameterUpdater, Runner, RunnerItem, Saver
from onion.testing import toy_examples

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

EXAMPLES = toy_examples(14)  # batches of 4: three full ones and one of two
PASSES = 2  # 8 steps


@attrs.frozen
class Kind:
    """An onion of the catalogue.

    Attributes:
        make: builds it for a folder, after seeding all random generators.
        passes: of its whole run, as for ``Runner.run``.
        steps: of its whole run, likewise.
    """

    make: Callable[[Path], Runner]
    passes: int | None = None
    steps: int | None = None


def begun(compose: Callable[[Path], Runner], passes: int | None = PASSES, steps: int | None = None) -> Kind:
    """Return an onion that is composed after seeding, as a script does at its top."""

    def make(folder: Path) -> Runner:
        seed(5)
        return compose(Path(folder))

    return Kind(make, passes, steps)


def seed(number: int) -> None:
    """Seed Python's, numpy's and Paddle's random generators."""
    random.seed(number)
    np.random.seed(number)
    paddle.seed(number)


class Network(paddle.nn.Layer):
    """A network with dropout: ``[n, 8] -> [n, 1]``; its layers have the paths of an encoder's."""

    def __init__(self, hidden: int = 6) -> None:
        super().__init__()
        self.encoder = paddle.nn.Layer()
        self.encoder.layers = paddle.nn.LayerList([paddle.nn.Linear(8, hidden), paddle.nn.Linear(hidden, hidden)])
        self.dropout = paddle.nn.Dropout(0.4)
        self.head = paddle.nn.Linear(hidden, 1)

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        hidden = batch["x"]
        for layer in self.encoder.layers:
            hidden = self.dropout(paddle.tanh(layer(hidden)))
        return self.head(hidden)

    def loss(self, outputs: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        return paddle.nn.functional.mse_loss(outputs, batch["y"])


class SquaredError:
    """A metric; in a training onion its sums are part of a checkpoint."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.sum, self.count = 0.0, 0

    def update(self, outputs: Any, batch: Any) -> None:
        self.sum += float(((outputs.numpy() - batch["y"]) ** 2).sum())
        self.count += len(batch["y"])

    def result(self) -> dict[str, float]:
        return {"error": self.sum / self.count}

    def state_dict(self) -> dict[str, Any]:
        return {"sum": self.sum, "count": self.count}

    def load_state_dict(self, saved: Any) -> None:
        self.sum, self.count = saved["sum"], saved["count"]


class Dice(RunnerItem):
    """A test that throws dice, so that every test moves the random generators."""

    def on_pass(self, state: Any) -> Any:
        yield
        state.report({"dice": random.random() + np.random.random() + float(paddle.rand([]))})


class Noise(RunnerItem):
    """Disturb every batch by numbers of all three random generators."""

    alters_batches = True

    def on_batch(self, state: Any) -> None:
        by = np.random.random() + random.random() + float(paddle.rand([]))
        state.batch = {**state.batch, "x": state.batch["x"] + np.float32(0.01 * by)}


def adamw(network: Any, rate: Any = 0.02) -> ParameterUpdater:
    clip = paddle.nn.ClipGradByGlobalNorm(1.0)
    return ParameterUpdater(paddle.optimizer.AdamW(rate, parameters=network.parameters(), grad_clip=clip))


def momentum(network: Any, rate: Any = 0.02) -> ParameterUpdater:
    return ParameterUpdater(paddle.optimizer.Momentum(rate, parameters=network.parameters()))


def data(**settings: Any) -> DataProvider:
    return DataProvider(EXAMPLES, **{"batch_size": 4, "shuffle": True, "prefetch": 0, **settings})


def tested(network: Any, *items: RunnerItem) -> Runner:
    return Runner(
        DataProvider(EXAMPLES[:6], 4, prefetch=0), Evaluator(SquaredError()), *items, Dice(), Forward(network)
    )


def kept(folder: Path, every: Any = 3, log: Any = 2, **saver: Any) -> list[RunnerItem]:
    return [Saver(folder, every=every, **saver), Logger(folder / "metrics.jsonl", log)]


def learning(network: Any, *inside: RunnerItem, updater: Any = adamw) -> list[RunnerItem]:
    return [updater(network), *inside, GradientMachine(network)]


def nothing(network: Any) -> list[RunnerItem]:
    return []


def trained(
    around: Callable[[Any], list[RunnerItem]],
    inside: Callable[[Any], list[RunnerItem]] = nothing,
    network: Callable[[], Any] = Network,
    updater: Any = adamw,
    passes: int = PASSES,
    **saver: Any,
) -> Kind:
    """Return a runner of the catalogue that trains a network.

    Args:
        around: makes the items around the updater, its data too, for the network.
        inside: makes the items between the updater and the machine.
        network: makes the network.
        updater: makes the updater for it.
        passes: of the whole run.
        saver: as in ``kept``.
    """

    def compose(folder: Path) -> Runner:
        made = network()
        return Runner(*kept(folder, **saver), *around(made), *learning(made, *inside(made), updater=updater))

    return begun(compose, passes)
