"""One network: what brings its data, bends its loop and moves it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from onion import (
    Accumulate,
    DataProvider,
    Evaluator,
    MixedPrecision,
    MovingAverage,
    NanGuard,
    Repeat,
    Runner,
    RunnerItem,
    SkipIf,
    SplitOnMemoryError,
    Tester,
    UseAverage,
)
from onion.data import collate as stack
from onion.training.loss_scale import LossScale
from tests.onions.parts import (
    EXAMPLES,
    Network,
    Noise,
    SquaredError,
    begun,
    data,
    kept,
    learning,
    momentum,
    tested,
)

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle


def plain(folder: Path) -> Runner:
    return Runner(*kept(folder), data(shuffle=False), *learning(Network(), updater=momentum))


def noise(folder: Path) -> Runner:
    return Runner(*kept(folder), data(), Noise(), *learning(Network()))


def collate(examples: list[Any]) -> Any:
    """Draw while a batch is made, as masking does."""
    by = np.random.random() + random.random() + float(paddle.rand([]))
    return stack([{**example, "x": example["x"] + np.float32(0.01 * by)} for example in examples])


def drawn(folder: Path) -> Runner:
    """Batches that take random numbers of the process when they are drawn."""
    return Runner(*kept(folder), data(collate=collate), *learning(Network()))


def buckets(folder: Path) -> Runner:
    """Batches by length, prepared in the background."""
    ahead = data(lengths=lambda example: int(abs(example["x"][0]) * 3), prefetch=2, seed=3)
    return Runner(*kept(folder, every=4), ahead, *learning(Network()))


def in_the_background(folder: Path) -> Runner:
    """Checkpoints are written while the run goes on."""
    return Runner(*kept(folder, every=1, async_save=True), data(), Noise(), *learning(Network()))


def stream(folder: Path) -> Runner:
    return Runner(*kept(folder), DataProvider(lambda: iter(EXAMPLES), 4), *learning(Network()))


def measured(folder: Path) -> Runner:
    """A metric over the training itself, whose sums are saved in mid-pass."""
    return Runner(*kept(folder), Evaluator(SquaredError()), data(), *learning(Network()))


class Running(Network):
    """A network with a running mean, which only a buffer holds."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", paddle.zeros([8]))

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        if self.training:
            self.mean.set_value(0.9 * self.mean + 0.1 * batch["x"].mean(0))
        return super().forward({**batch, "x": batch["x"] - self.mean})


def buffers(folder: Path) -> Runner:
    network = Running()
    return Runner(*kept(folder), data(), MovingAverage(network, 0.5), *learning(network))


def accumulation(folder: Path) -> Runner:
    """Three batches an update; the last group of a pass is smaller, and its last batch is."""
    return Runner(*kept(folder, every=2), data(batch_size=3), *learning(Network(), Accumulate(3)))


def average(folder: Path) -> Runner:
    network = Network()
    smooth = MovingAverage(network, 0.7)
    test = Tester(tested(network, UseAverage(smooth)), every=2)
    return Runner(*kept(folder), test, data(), smooth, *learning(network))


class Overflowing(RunnerItem):
    """A batch now and then whose numbers are too large for a loss scale, or for anything."""

    def __init__(self, by: float) -> None:
        self.by = by

    def on_batch(self, state: Any) -> None:
        if state.next_step in (3, 5, 6):
            state.batch = {**state.batch, "y": state.batch["y"] * paddle.to_tensor(self.by).numpy()}


def loss_scale(folder: Path) -> Runner:
    """Gradients overflow, so the scale shrinks and grows; on the CPU the arithmetic stays in 32 bits."""
    mixed = MixedPrecision("float16", scale=LossScale(2.0**100, growth_interval=2))
    return Runner(*kept(folder), data(), Overflowing(1e30), *learning(Network(), mixed))


def nan_guard(policy: Any) -> Any:
    def compose(folder: Path) -> Runner:
        guard = NanGuard(policy, check_gradients=True, snapshot_every=2)
        return Runner(*kept(folder), data(), Overflowing(float("nan")), *learning(Network(), guard))

    return compose


def skipping(folder: Path) -> Runner:
    """Some batches do not count, others are run twice."""
    skip = SkipIf(lambda state: float(state.batch["y"][0, 0]) > 1)
    return Runner(*kept(folder), data(batch_size=2), skip, Repeat(2), *learning(Network()))


class Narrow(Network):
    """A network for which the memory runs out with more than two examples."""

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        outputs = super().forward(batch)
        if self.training and len(outputs) > 2:
            raise MemoryError("out of memory")
        return outputs


def splitting(folder: Path) -> Runner:
    network = Narrow()
    return Runner(*kept(folder), data(), *learning(network, SplitOnMemoryError(network)))


ONE_NETWORK = {
    "plain": begun(plain),
    "noise": begun(noise),
    "drawn": begun(drawn),
    "buckets": begun(buckets),
    "in the background": begun(in_the_background),
    "stream": begun(stream),
    "measured": begun(measured),
    "buffers": begun(buffers),
    "accumulation": begun(accumulation, passes=4),
    "average": begun(average),
    "loss scale": begun(loss_scale),
    "skip what is no number": begun(nan_guard("skip")),
    "go back from what is no number": begun(nan_guard("rollback")),
    "skipping": begun(skipping),
    "splitting": begun(splitting),
}
