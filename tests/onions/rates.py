"""Learning rates: every schedule, one for each layer, and parameters that learn from a step on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from onion import Freeze, Observer, ParameterUpdater, Runner, RunnerItem, Unfreeze, schedules
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from tests.onions.parts import Network, adamw, begun, data, kept, learning

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

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


def scheduled(rate: Callable[[], Any]) -> Callable[[Path], Runner]:
    def compose(folder: Path) -> Runner:
        return Runner(*kept(folder), data(), *learning(Network(), updater=lambda network: adamw(network, rate())))

    return compose


def by_layer(folder: Path) -> Runner:
    def updater(network: Any) -> ParameterUpdater:
        return ParameterUpdater(fine_tuning_optimizer(network, 0.05, STEPS, layerwise_decay=0.5))

    return Runner(*kept(folder), data(), *learning(Network(), updater=updater))


def by_hand(folder: Path) -> Runner:
    """Set in the middle of the run, by one who looks at the step alone."""
    *rings, updater, machine = *kept(folder), data(), *learning(Network())
    lower = Observer(on_batch_begin=lambda state: updater.set_learning_rate(0.1 / (1 + state.step // 3)))
    return Runner(*rings, lower, updater, machine)


def freezing(folder: Path) -> Runner:
    """A head learns first, then the upper layer, then all of the lower one but its bias."""
    network = Network()
    rings: list[RunnerItem] = [
        Freeze(network, "encoder.layers.*.weight", until=5),
        Freeze(network, "encoder.layers.*.bias"),
        Unfreeze(network, "encoder.layers.1.*", at=2),
    ]
    return Runner(*kept(folder), data(), *rings, *learning(network))


LEARNING_RATES = {
    **{f"rate {name}": begun(scheduled(rate)) for name, rate in RATES.items()},
    "rate by layer": begun(by_layer),
    "rate by hand": begun(by_hand),
    "freezing": begun(freezing),
}
