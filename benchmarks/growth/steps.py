"""Sides: whole training steps of an encoder on random ids; batches of many tasks, or of many rings, around very little.

Steps of an encoder are forward, backward, clipping and AdamW.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

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
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.tasks.batches import batch_of
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from onion.tasks.networks.classifier import Classifier
from onion.tasks.networks.multi_head import MultiHead
from onion.testing import Batches

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle
from paddle import nn

LIBRARIES = ("paddlepaddle",)

Work = Callable[[], dict[str, dict[str, float]]]

BASE = {"batch": 16, "length": 64, "layers": 2, "width": 256}
HEAD = 64
VOCABULARY = 30522
STEPS = 10**6


@cache
def network(layers: int, width: int) -> tuple[Classifier, Any]:
    config = EncoderConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // HEAD,
        intermediate_size=4 * width,
        max_position_embeddings=512,
    )
    made = Classifier(Encoder(config), 2)
    return made, fine_tuning_optimizer(made, 5e-5, STEPS)


def batch(size: int, length: int) -> dict[str, Any]:
    random = np.random.default_rng(size * 1000 + length)
    ids = random.integers(1000, VOCABULARY, size=(size, length))
    types = np.zeros(length, np.int64)
    return batch_of([{"ids": each, "types": types, "label": place % 2} for place, each in enumerate(ids)])


def seconds_of_step(name: str, size: int) -> float:
    """Train one step with all but one size at the base."""
    shape = {**BASE, name: size}
    made, optimizer = network(shape["layers"], shape["width"])
    ready = batch(shape["batch"], shape["length"])
    runner = Runner(Batches([ready]), ParameterUpdater(optimizer), GradientMachine(made))
    begun = perf_counter()
    float(runner.run(passes=1).loss)  # type: ignore[arg-type]
    return perf_counter() - begun


BATCHES = 1024
RING_BATCHES = 200
WIDTH = 8


class Regressor(nn.Layer):
    def __init__(self, encoder: nn.Layer) -> None:
        super().__init__()
        self.encoder, self.last = encoder, nn.Linear(WIDTH, 1)

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        return self.last(self.encoder(batch["x"]))

    def loss(self, outputs: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        return (outputs**2).mean()


class Nothing(RunnerItem):
    def on_batch(self, state: State) -> HookIterator:
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


def encoder(job: Mapping[str, Any]) -> Work:
    """Prepare steps of encoders; the job has ``threads`` and ``axes`` (name -> sizes)."""
    return _each_size(job, seconds_of_step)


def loops(job: Mapping[str, Any]) -> Work:
    """Prepare batches of tasks and rings; the job is that of ``encoder``."""
    return _each_size(job, seconds_of_batch)


def _each_size(job: Mapping[str, Any], seconds_of: Callable[[str, int], float]) -> Work:
    use_threads(job["threads"])

    def work() -> dict[str, dict[str, float]]:
        return {name: {str(size): seconds_of(name, size) for size in sizes} for name, sizes in job["axes"].items()}

    work()
    return work
