"""A side: loops of many tasks, or of many rings, around next to nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.common.worker import Answer, serve
from onion import (
    DataProvider,
    GradientMachine,
    HookIterator,
    ParameterUpdater,
    Runner,
    RunnerItem,
    TaskData,
    TaskSampler,
)
from onion.device import use_threads
from onion.engine.state import State
from onion.tasks.networks.multi_head import MultiHead
from onion.testing import Batches

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle
from paddle import nn

BATCHES = 1024
RING_BATCHES = 200
WIDTH = 8


class Regressor(nn.Layer):
    """A linear layer over another one."""

    def __init__(self, encoder: nn.Layer) -> None:
        super().__init__()
        self.encoder, self.last = encoder, nn.Linear(WIDTH, 1)

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        """Return ``[batch, 1]``."""
        return self.last(self.encoder(batch["x"]))

    def cost(self, outputs: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the mean square."""
        return (outputs**2).mean()


class Nothing(RunnerItem):
    """A ring that does nothing, on both ways."""

    def on_batch(self, state: State) -> HookIterator:
        """Do nothing."""
        yield


def tasks(count: int) -> tuple[Runner, int]:
    """Return the training of so many tasks, and the batches of a pass, which are as many for any number of tasks."""
    paddle.seed(0)
    encoder = nn.Linear(WIDTH, WIDTH)
    names = [f"task{number}" for number in range(count)]
    network = MultiHead(encoder, {name: Regressor(encoder) for name in names})
    examples = [{"x": row} for row in np.ones((BATCHES // count, WIDTH), np.float32)]
    sampler = TaskSampler({name: TaskData(DataProvider(examples, 1)) for name in names}, finished="stop")
    optimizer = paddle.optimizer.SGD(0.0, parameters=network.parameters())
    return Runner(sampler, ParameterUpdater(optimizer), GradientMachine(network)), BATCHES


def rings(count: int) -> tuple[Runner, int]:
    """Return a loop of so many rings, and its batches."""
    return Runner(*[Nothing() for _ in range(count)], Batches(RING_BATCHES)), RING_BATCHES


def seconds_of_batch(name: str, size: int) -> float:
    """Run a pass; return the seconds of a batch.

    Raises:
        SystemExit: it had another number of batches.
    """
    runner, batches = {"tasks": tasks, "rings": rings}[name](size)
    begun = perf_counter()
    reached = runner.run(passes=1).step
    seconds = perf_counter() - begun
    if name == "tasks" and reached != batches:
        raise SystemExit(f"{size} tasks: {reached} batches, not {batches}")
    return seconds / batches


def prepare(job: Mapping[str, Any]) -> Callable[..., Answer]:
    """Run every size once; the job is that of ``encoder``."""
    use_threads(job["threads"])

    def work() -> Answer:
        """Return the seconds of a batch, by axis and size."""
        return {
            name: {str(size): seconds_of_batch(name, size) for size in sizes} for name, sizes in job["axes"].items()
        }

    work()
    return work


if __name__ == "__main__":
    serve(prepare, ("paddlepaddle",))
