"""One network: what brings its data, bends its loop and moves it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from onion import (
    Accumulate,
    DataProvider,
    Evaluator,
    Every,
    Freeze,
    MixedPrecision,
    MovingAverage,
    NanGuard,
    Observer,
    ParameterUpdater,
    Repeat,
    Runner,
    RunnerItem,
    SkipIf,
    SplitOnMemoryError,
    TaskData,
    TaskSampler,
    Tester,
    Tracker,
    Unfreeze,
    UseAverage,
    VisualDLWriter,
    schedules,
)
from onion.data import collate as stack
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from onion.training.loss_scale import LossScale
from tests.data.computed import noisy
from tests.onions.parts import (
    EXAMPLES,
    Network,
    Noise,
    SquaredError,
    adamw,
    begun,
    data,
    kept,
    learning,
    momentum,
    tested,
    trained,
)

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle


def collate(examples: list[Any]) -> Any:
    """Draw while a batch is made, as masking does."""
    by = np.random.random() + random.random() + float(paddle.rand([]))
    return stack([{**example, "x": example["x"] + np.float32(0.01 * by)} for example in examples])


class Running(Network):
    """A network with a running mean, which only a buffer holds."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", paddle.zeros([8]))

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        if self.training:
            self.mean.set_value(0.9 * self.mean + 0.1 * batch["x"].mean(0))
        return super().forward({**batch, "x": batch["x"] - self.mean})


def averaged(network: Any) -> list[RunnerItem]:
    smooth = MovingAverage(network, 0.7)
    return [Tester(tested(network, UseAverage(smooth)), every=2), data(), smooth]


class Overflowing(RunnerItem):
    """A batch now and then whose numbers are too large for a loss scale, or for anything."""

    alters_batches = True

    def __init__(self, by: float) -> None:
        self.by = by

    def on_batch(self, state: Any) -> None:
        if state.next_step in (3, 5, 6):
            state.batch = {**state.batch, "y": state.batch["y"] * paddle.to_tensor(self.by).numpy()}


def nan_guard(policy: Any) -> Any:
    guard = partial(NanGuard, policy, check_gradients=True, snapshot_every=2)
    return trained(lambda network: [data(), Overflowing(float("nan"))], lambda network: [guard()])


class Narrow(Network):
    """A network for which the memory runs out with more than two examples."""

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        outputs = super().forward(batch)
        if self.training and len(outputs) > 2:
            raise MemoryError("out of memory")
        return outputs


class GradientHistograms(RunnerItem):
    """Record how the gradients of a network are distributed, and what they have been multiplied by."""

    def __init__(self, network: Any) -> None:
        self.network = network

    def on_batch(self, state: Any) -> Any:
        yield
        state.record_scalar("share", state.share)
        for path, parameter in self.network.named_parameters():
            state.record_histogram(path, parameter.grad)


def tracked(folder: Path) -> Runner:
    network = Network()
    tracker = Tracker(VisualDLWriter(folder / "curves"), every=2)
    recording = Every(2, GradientHistograms(network))
    return Runner(*kept(folder), tracker, data(), *learning(network, recording, updater=clipped))


def clipped(network: Any) -> ParameterUpdater:
    return ParameterUpdater(fine_tuning_optimizer(network, 0.05, 8))


ONE_NETWORK = {
    "plain": trained(lambda network: [data(shuffle=False)], updater=momentum),
    "noise": trained(lambda network: [data(), Noise()]),
    # Batches take random numbers of the process when they are made.
    "drawn": trained(lambda network: [data(collate=collate)]),
    # Batches by length, prepared in the background.
    "buckets": trained(
        lambda network: [data(lengths=lambda example: int(abs(example["x"][0]) * 3), prefetch=2, seed=3)], every=4
    ),
    # Checkpoints are written while the run goes on.
    "in the background": trained(lambda network: [data(), Noise()], every=1, async_save=True),
    "stream": trained(lambda network: [DataProvider(lambda: iter(EXAMPLES), 4)]),
    # Figures, scalars and histograms in a file of another tool.
    "tracked": begun(tracked),
    "stream out of a buffer": trained(lambda network: [DataProvider(lambda: iter(EXAMPLES), 4, shuffle_buffer=5)]),
    "weights": trained(lambda network: [data(weights=range(14), lengths=range(14))]),
    "worker processes": trained(lambda network: [data(num_workers=2, prefetch=1, collate=noisy)]),
    # A metric over the training itself, whose sums are saved in mid-pass.
    "measured": trained(lambda network: [Evaluator(SquaredError()), data()]),
    "buffers": trained(lambda network: [data(), MovingAverage(network, 0.5)], network=Running),
    # Three batches an update; the last group of a pass is smaller, and its last batch is.
    "accumulation": trained(lambda network: [data(batch_size=3)], lambda network: [Accumulate(3)], passes=4, every=2),
    "average": trained(averaged),
    # Gradients overflow, so the scale shrinks and grows; on the CPU the arithmetic stays in 32 bits.
    "loss scale": trained(
        lambda network: [data(), Overflowing(1e30)],
        lambda network: [MixedPrecision("float16", scale=LossScale(2.0**100, growth_interval=2))],
    ),
    "skip what is no number": nan_guard("skip"),
    "go back from what is no number": nan_guard("rollback"),
    # Some batches do not count, others are run twice.
    "skipping": trained(
        lambda network: [data(batch_size=2), SkipIf(lambda state: float(state.batch["y"][0, 0]) > 1), Repeat(2)]
    ),
    "splitting": trained(lambda network: [data()], lambda network: [SplitOnMemoryError(network)], network=Narrow),
}


# -- learning rates: every schedule, one for each layer, parameters that learn from a step on --------------------------

STEPS = 8

RATES: dict[str, Callable[[], Any]] = {
    "constant": lambda: schedules.constant(0.05, warmup_steps=3),
    "linear": lambda: schedules.linear_warmup_and_decay(0.05, STEPS, warmup_ratio=0.4),
    "jump": lambda: schedules.palm_linear(0.05, STEPS, warmup_ratio=0.4),
    "polynomial": lambda: schedules.polynomial(0.05, STEPS, power=2.0, end=0.001),
    "cosine": lambda: schedules.cosine(0.05, STEPS, warmup_ratio=0.2, cycles=1.0),
    "noam": lambda: schedules.noam(0.05, warmup_steps=3),
    "paddle's": lambda: paddle.optimizer.lr.LinearWarmup(paddle.optimizer.lr.PolynomialDecay(0.1, STEPS), 4, 0.0, 0.1),
}


def by_hand(folder: Path) -> Runner:
    """Set in the middle of the run, by one who looks at the step alone."""
    *rings, updater, machine = *kept(folder), data(), *learning(Network())
    lower = Observer(on_batch_begin=lambda state: updater.set_learning_rate(0.1 / (1 + state.step // 3)))
    return Runner(*rings, lower, updater, machine)


def by_layer(network: Any) -> ParameterUpdater:
    return ParameterUpdater(fine_tuning_optimizer(network, 0.05, STEPS, layerwise_decay=0.5))


def freezing(network: Any) -> list[RunnerItem]:
    """A head learns first, then the upper layer, then all of the lower one but its bias."""
    frozen = Freeze(network, "encoder.layers.*.weight", until=5), Freeze(network, "encoder.layers.*.bias")
    return [data(), *frozen, Unfreeze(network, "encoder.layers.1.*", at=2)]


LEARNING_RATES = {
    **{
        f"rate {name}": trained(lambda network: [data()], updater=lambda network, rate=rate: adamw(network, rate()))
        for name, rate in RATES.items()
    },
    "rate by layer": trained(lambda network: [data()], updater=by_layer),
    "rate by hand": begun(by_hand),
    "freezing": trained(freezing),
}


# -- data from a `paddle.io.DataLoader`, with workers and without ------------------------------------------------------


class Augmented(paddle.io.Dataset):  # type: ignore[misc]
    """The examples, disturbed by random numbers where they are read by a worker."""

    def __len__(self) -> int:
        return len(EXAMPLES)

    def __getitem__(self, index: int) -> dict[str, Any]:
        example = EXAMPLES[index]
        by = np.random.random() if paddle.io.get_worker_info() else 0.0
        return {**example, "x": example["x"] + np.float32(0.01 * by)}


class Stream(paddle.io.IterableDataset):  # type: ignore[misc]
    """The examples in the order of their numbers."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from EXAMPLES


def shuffled(workers: int) -> Any:
    return paddle.io.DataLoader(Augmented(), batch_size=4, shuffle=True, num_workers=workers)


def of_tasks(network: Any) -> list[RunnerItem]:
    """One of two tasks has a DataLoader."""
    tasks = {"a": TaskData(DataProvider(shuffled(0))), "b": TaskData(DataProvider(EXAMPLES, 4, prefetch=0))}
    return [TaskSampler(tasks)]


DATA_LOADERS = {
    "data loader": trained(lambda network: [DataProvider(shuffled(0))]),
    "data loader with workers": trained(lambda network: [DataProvider(shuffled(2))]),
    "data loader of a stream": trained(
        lambda network: [DataProvider(paddle.io.DataLoader(Stream(), batch_size=4, num_workers=1))]
    ),
    "data loader of a task": trained(of_tasks, passes=1),
}
