"""Many tasks over one encoder, with each way of choosing the next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from onion import DataProvider, ForTask, GradientMachine, Runner, RunnerItem, TaskData, TaskSampler, Tester
from onion.multitask.stages import Stages
from onion.multitask.strategies import (
    ByLoss,
    BySize,
    ByStep,
    MixRatio,
    RoundRobin,
    Strategy,
    Temperature,
    Uniform,
    Weights,
)
from onion.schedules import by_task, noam
from onion.tasks.networks.multi_head import MultiHead
from tests.onions.parts import EXAMPLES, Noise, adamw, begun, data, kept, tested

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "mix ratio": MixRatio,
    "uniform": Uniform,
    "temperature": Temperature,
    "size": BySize,
    "weights": lambda: Weights({"slope": 1.0, "valley": 2.0, "stream": 1.0}),
    "turns": RoundRobin,
    "step": lambda: ByStep(lambda step: {"slope": 1.0, "valley": 0.9**step, "stream": 0.3}),
    "loss": lambda: ByLoss(rate=0.5, lag=2),
}
SIZED = ("temperature", "size")
"""These need to know how long a pass of each task is, so none of theirs is a stream."""


class Head(paddle.nn.Layer):
    """Dropout and a number for every example, over an encoder that is shared."""

    def __init__(self, encoder: paddle.nn.Layer) -> None:
        super().__init__()
        self.encoder, self.dropout, self.linear = encoder, paddle.nn.Dropout(0.3), paddle.nn.Linear(6, 1)

    def forward(self, batch: Any) -> paddle.Tensor:
        return self.linear(self.dropout(paddle.tanh(self.encoder(batch["x"]))))

    def loss(self, outputs: paddle.Tensor, batch: Any) -> paddle.Tensor:
        return paddle.nn.functional.mse_loss(outputs, batch["y"])


def sampled(strategy: str, *rings: RunnerItem, **settings: Any) -> Callable[[Path], Runner]:
    """A long task, a short one that comes round again within a pass, and one that helps."""

    def compose(folder: Path) -> Runner:
        encoder = paddle.nn.Linear(8, 6)
        network = MultiHead(encoder, {name: Head(encoder) for name in ("slope", "valley", "stream")})
        source = EXAMPLES[:5] if strategy in SIZED else (lambda: iter(EXAMPLES[:5]))
        tasks = {
            "slope": TaskData(data()),
            "valley": TaskData(DataProvider(EXAMPLES[:6], 4, shuffle=True, seed=1), mix_ratio=0.5),
            "stream": TaskData(DataProvider(source, 2), mix_ratio=0.5, target=False),
        }
        return Runner(
            *kept(folder),
            Tester(tested(network.networks["slope"]), every=3),
            TaskSampler(tasks, STRATEGIES[strategy](), seed=3, **settings),
            ForTask("valley", Noise()),
            adamw(network),
            GradientMachine(network),
        )

    return compose


def staged(folder: Path) -> Runner:
    """Tasks that come in one after the other, each with a rate and a test of its own; a stream is one of them."""
    encoder = paddle.nn.Linear(8, 6)
    network = MultiHead(encoder, {name: Head(encoder) for name in ("slope", "valley", "stream")})
    tasks = {
        "slope": TaskData(data()),
        "valley": TaskData(DataProvider(EXAMPLES[:6], 4, shuffle=True, seed=1)),
        "stream": TaskData(DataProvider(lambda: iter(EXAMPLES[:5]), 2)),
    }
    return Runner(
        *kept(folder),
        *(Tester(tested(head), name=name) for name, head in network.networks.items()),
        TaskSampler(tasks, Stages({"slope": 4, "valley": 3, "stream": 2}, keep=1, seed=3)),
        ForTask("valley", Noise()),
        adamw(network, by_task(noam(0.02, 2))),
        GradientMachine(network),
    )


MANY_TASKS = {
    "tasks in stages": begun(staged, passes=None),
    **{f"tasks by {name}": begun(sampled(name), passes=1) for name in STRATEGIES},
    **{f"tasks that stop, by {name}": begun(sampled(name, finished="stop")) for name in ("uniform", "turns", "loss")},
}
