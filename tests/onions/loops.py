"""Loops within and around the loop: tests, what they decide, trials, and items that come and go."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

from onion import (
    EarlyStopping,
    GradientMachine,
    MovingAverage,
    Observer,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Slot,
    Tester,
    Trial,
)
from tests.onions.parts import Network, Noise, begun, data, kept, learning, tested


def tests(folder: Path) -> Runner:
    """Several tests, at steps and at the end of a pass, and a test within a test."""
    network = Network()
    within = Tester(tested(network), every=1, name="within")
    return Runner(
        *kept(folder, every=4),
        Tester(tested(network), every=2),
        Tester(tested(network, within), every=3, name="around"),
        Tester(tested(network), name="end"),
        Noise(),
        data(),
        *learning(network),
    )


def only_passes(folder: Path) -> Runner:
    """Nothing is saved, logged or tested but at the end of a pass."""
    network = Network()
    return Runner(*kept(folder, every="pass", log="pass"), Tester(tested(network)), data(), *learning(network))


def best(folder: Path) -> Runner:
    """Of all checkpoints the newest and the best are kept; which is the best, dice say."""
    network = Network()
    saved = kept(folder, every=2, keep_last=1, monitor="tester.dice")
    return Runner(*saved, Tester(tested(network), every=1), data(), *learning(network))


def early_stop(folder: Path) -> Runner:
    """The figures have to rise and fall, so the test has noise in it."""
    network = Network()
    stop = EarlyStopping("tester.dice", patience=3)
    return Runner(
        *kept(folder, monitor="tester.dice"), stop, Tester(tested(network), every=1), data(), *learning(network)
    )


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


def trial(folder: Path) -> Runner:
    return Runner(*kept(folder), Search(), data(), *learning(Network()))


def slot(folder: Path) -> Runner:
    """An item with a state, held by a slot."""
    network = Network()
    return Runner(*kept(folder), data(), Slot(MovingAverage(network, 0.5)), *learning(network))


def slot_with_a_test(folder: Path) -> Runner:
    return Runner(
        *kept(folder), Slot(Tester(tested(network := Network()), every=2, name="held")), data(), *learning(network)
    )


LOOPS = {
    "tests": begun(tests),
    "only passes": begun(only_passes),
    "best": begun(best),
    "early stop": begun(early_stop, passes=8),
    "trial": begun(trial),
    "slot": begun(slot),
    "slot with a test": begun(slot_with_a_test),
}
