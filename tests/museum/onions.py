"""The onions of the exhibits. What they are made of stays as it is: a checkpoint is refused where its onion differs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onion import (
    DataProvider,
    EarlyStopping,
    Evaluator,
    Forward,
    GradientMachine,
    Logger,
    MixedPrecision,
    MovingAverage,
    NanGuard,
    Observer,
    ParameterUpdater,
    Runner,
    Saver,
    SkipIf,
    Slot,
    SplitOnMemoryError,
    State,
    TaskData,
    TaskSampler,
    Tester,
    schedules,
)
from onion.multitask.strategies import ByLoss
from onion.online import (
    ControlServer,
    DriftDetector,
    Journal,
    LearningRateBoost,
    ProgressiveValidation,
    ReplayBuffer,
    StreamProvider,
    Switch,
)
from onion.online.sources.source import Sample
from onion.training.loss_scale import LossScale

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

CUT, STEPS = 7, 12


class Network(paddle.nn.Layer):
    """``[n, 3] -> [n, 1]``, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.dropout, self.head = paddle.nn.Linear(3, 4), paddle.nn.Dropout(0.2), paddle.nn.Linear(4, 1)

    def forward(self, batch: Mapping[str, Any]) -> paddle.Tensor:
        return self.head(self.dropout(paddle.tanh(self.body(batch["x"]))))

    def loss(self, outputs: paddle.Tensor, batch: Mapping[str, Any]) -> paddle.Tensor:
        return paddle.nn.functional.mse_loss(outputs, batch["y"])


class Error:
    """A metric that is saved in mid-pass."""

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

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        self.sum, self.count = saved["sum"], saved["count"]


def examples(count: int) -> list[dict[str, Any]]:
    """A parabola, the same on every machine."""
    rows = [np.array([i % 3, i % 5, i % 7], "float32") / 7 for i in range(count)]
    return [{"x": row, "y": np.array([row @ row], "float32")} for row in rows]


def outside(folder: Path, network: Network) -> list[Any]:
    test = Runner(DataProvider(examples(5), 5, prefetch=0), Evaluator(Error()), Forward(network))
    return [
        Saver(folder, every=100, monitor="tester.error", mode="min"),
        Logger(folder / "metrics.jsonl", 1),
        EarlyStopping("tester.error", patience=9, mode="min"),
        Tester(test, every=2),
    ]


def begun() -> Network:
    paddle.device.set_device("cpu")
    random.seed(1)
    np.random.seed(2)
    paddle.seed(3)
    return Network()


def one(folder: Path) -> Runner:
    """The items that have a state, but for those below."""
    network = begun()
    rate = schedules.cosine(0.05, total_steps=20, warmup_ratio=0.2)
    return Runner(
        *outside(folder, network),
        Evaluator(Error()),
        DataProvider(
            examples(16), 3, shuffle=True, seed=4, lengths=lambda example: int(example["x"][0] * 7), prefetch=0
        ),
        SkipIf(lambda state: state.batch_id == 1),
        Slot(MovingAverage(network, 0.8)),
        ParameterUpdater(paddle.optimizer.AdamW(rate, parameters=network.parameters())),
        MixedPrecision("float16", scale=LossScale(1024.0, growth_interval=3)),
        SplitOnMemoryError(network),
        GradientMachine(network),
    )


def tasks(folder: Path) -> Runner:
    """Two tasks, chosen by their losses."""
    network = begun()
    rate = paddle.optimizer.lr.LinearWarmup(paddle.optimizer.lr.PolynomialDecay(0.1, 20), 4, 0.0, 0.1)
    sampled = {
        "long": TaskData(DataProvider(examples(16), 3, shuffle=True, seed=4, prefetch=0)),
        "short": TaskData(DataProvider(examples(4), 2, prefetch=0), mix_ratio=0.5, target=False),
    }
    return Runner(
        *outside(folder, network),
        TaskSampler(sampled, ByLoss(rate=0.5, lag=2), seed=5),
        MovingAverage(network, 0.5),
        ParameterUpdater(paddle.optimizer.Momentum(rate, parameters=network.parameters())),
        NanGuard("rollback", snapshot_every=2),
        GradientMachine(network),
    )


class Listed:
    """A source of the same samples in the same order."""

    position = ""

    def __init__(self, samples: list[Any]) -> None:
        self.samples = samples

    def read(self, n: int, timeout: float) -> list[Sample]:
        begin = int(self.position or 0)
        chosen = self.samples[begin : begin + n]
        self.position = str(begin + len(chosen))
        return [Sample(data, str(begin + place)) for place, data in enumerate(chosen, 1)]

    def commit(self, position: str) -> None: ...

    def waiting(self) -> None: ...

    def close(self) -> None: ...


def as_arrays(sample: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(value, "float32") for name, value in sample.items()}


def online(folder: Path) -> Runner:
    """Online learning, with commands in its journal; the items had other names, and the file, too."""
    network = begun()
    control = ControlServer(port=None)
    listed = [{name: array.tolist() for name, array in example.items()} for example in examples(60)]

    def command(state: State) -> None:
        if state.next_step in (3, 9):
            control.ask("set", {"learning_rate": 0.1 / state.next_step})

    updater = ParameterUpdater(paddle.optimizer.Adam(0.05, parameters=network.parameters()))
    test = ProgressiveValidation(
        network, {"error": lambda outputs, batch: (outputs[:, 0] - batch["y"][:, 0]) ** 2}, every=2
    )
    raised = LearningRateBoost(updater, times=2, steps=3)
    return Runner(
        Saver(folder, every=100),
        Logger(folder / "metrics.jsonl", 1),
        Journal(),
        StreamProvider(Listed(listed), 3, pass_every=15, prepare=as_arrays),
        control,
        test,
        DriftDetector(raised.begin, test.of("error"), longest=100),
        raised,
        Switch(ReplayBuffer(10, 0.5, seed=4)),
        updater,
        Observer(on_batch_end=command),
        GradientMachine(network),
    )


EXHIBITS = {"one": one, "tasks": tasks, "online": online}
