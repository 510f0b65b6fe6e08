"""Loops within and around the loop: tests, what they decide, trials, and items that come and go."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from onion import (
    EarlyStopping,
    GradientMachine,
    LearningRateFinder,
    MovingAverage,
    Observer,
    ParameterUpdater,
    Prune,
    Runner,
    RunnerItem,
    Slot,
    Tester,
    Trial,
)
from tests.onions.parts import Noise, data, learning, tested, trained


def tests(network: Any) -> list[RunnerItem]:
    """Several tests, at steps and at the end of a pass, and a test within a test."""
    within = Tester(tested(network), every=1, name="within")
    return [
        Tester(tested(network), every=2),
        Tester(tested(network, within), every=3, name="around"),
        Tester(tested(network), name="end"),
        Noise(),
        data(),
    ]


def tests_of_every_batch(network: Any, *items: RunnerItem) -> list[RunnerItem]:
    return [*items, Tester(tested(network), every=1), data()]


class Search(RunnerItem):
    """Before every third batch, take the rate that a trial of two steps comes to less cost with."""

    def on_batch(self, state: Any) -> None:
        if state.step % 3 == 0:
            runner = state.runner
            now = runner[ParameterUpdater].optimizer.get_lr()
            rate = min((now, now / 2, now * 2), key=lambda rate: self.tried(rate, state))
            runner[ParameterUpdater].set_learning_rate(rate)

    def tried(self, rate: float, state: Any) -> float:
        network = deepcopy(state.runner[GradientMachine].network)
        setting = Observer(initialize=lambda trial: trial.runner[ParameterUpdater].set_learning_rate(rate))
        tried = Runner(Trial(), setting, data(), *learning(network)).run(steps=state.step + 2, parent=state)
        return float(tried.loss)


class Judge:
    """A trial that is given up at its sixth value, by what it was told of."""

    number = 0

    def __init__(self) -> None:
        self.told: dict[int, float] = {}

    def report(self, value: float, step: int) -> None:
        self.told[step] = value

    def should_prune(self) -> bool:
        return max(self.told) >= 5


LOOPS = {
    "tests": trained(tests, every=4),
    # Nothing is saved, logged or tested but at the end of a pass.
    "only passes": trained(lambda network: [Tester(tested(network)), data()], every="pass", log="pass"),
    # Of all checkpoints the newest and the best are kept; which is the best, dice say.
    "best": trained(tests_of_every_batch, every=2, keep_last=1, monitor="tester.dice"),
    # The figures have to rise and fall, so the test has noise in it.
    "early stop": trained(
        lambda network: tests_of_every_batch(network, EarlyStopping("tester.dice", patience=3)),
        passes=8,
        monitor="tester.dice",
    ),
    "pruned": trained(lambda network: tests_of_every_batch(network, Prune(Judge(), "tester.dice"))),
    "range test": trained(lambda network: [LearningRateFinder(1e-3, 1.0, 7, threshold=1e9), data()]),
    "trial": trained(lambda network: [Search(), data()]),
    # An item with a state, held by a slot.
    "slot": trained(lambda network: [data(), Slot(MovingAverage(network, 0.5))]),
    "slot with a test": trained(lambda network: [Slot(Tester(tested(network), every=2, name="held")), data()]),
}
