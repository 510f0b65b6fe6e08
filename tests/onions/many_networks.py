"""Several networks in one onion: against each other, one from the other, each for itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from onion import (
    DataProvider,
    Every,
    Forward,
    GradientMachine,
    MovingAverage,
    OutputsToBatch,
    Runner,
    RunnerItem,
    StopGradient,
    Tester,
)
from tests.onions.parts import Network, Noise, adamw, begun, data, kept, learning, momentum, tested, trained

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle


def two(folder: Path) -> Runner:
    """Each with an optimizer of its own, in turn."""
    one, other = Network(), Network(hidden=5)
    rings = Runner(*learning(one)), Every(2, Runner(*learning(other, updater=momentum)))
    return Runner(*kept(folder), Tester(tested(one), every=3), data(), *rings)


class Forger(paddle.nn.Layer):
    """Noise -> as many points as a batch has, ``[n, 8]``."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = paddle.nn.Linear(4, 8)

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        return self.linear(paddle.randn([len(batch["x"]), 4]))


def gan(folder: Path, provider: Callable[[], DataProvider] = data) -> Runner:
    judge, forger = Network(), Forger()
    softplus = paddle.nn.functional.softplus

    def told_apart(scores: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        return (softplus(-scores) + softplus(judge({"x": forger(batch).detach()}))).mean()

    def generator_loss(fakes: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        return softplus(-judge({"x": fakes})).mean()

    return Runner(
        *kept(folder),
        provider(),
        Runner(adamw(judge), GradientMachine(judge, told_apart)),
        Every(2, Runner(StopGradient(judge), adamw(forger), GradientMachine(forger, generator_loss))),
    )


class Pupil(Network):
    """A network that also learns what another one says."""

    def loss(self, outputs: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        return super().loss(outputs, batch) + paddle.nn.functional.mse_loss(outputs, batch["teacher"])


def taught(network: Any) -> list[RunnerItem]:
    """The teacher is made by the script and in no checkpoint."""
    return [data(), Forward(Network(hidden=9)), OutputsToBatch("teacher")]


def mean_teacher(pupil: Any) -> list[RunnerItem]:
    """The teacher is the average of its pupil."""
    teacher = MovingAverage(pupil, 0.6)
    return [data(), teacher, Noise(), Forward(teacher.average), OutputsToBatch("teacher")]


MANY_NETWORKS = {
    "two networks": begun(two),
    "gan": begun(gan),
    "distillation": trained(taught, network=Pupil),
    "mean teacher": trained(mean_teacher, network=Pupil),
}
