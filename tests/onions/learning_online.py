"""Learning from a stream: tests before training, labels that come late, old samples, changes, snapshots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from onion import DataProvider, MovingAverage, Runner, RunnerItem
from onion.online.learning.drift import DriftDetector, LearningRateBoost
from onion.online.learning.progressive_validation import DelayedLabels, ProgressiveValidation
from onion.online.learning.publish import Publish
from onion.online.learning.replay_buffer import ReplayBuffer
from tests.onions.parts import EXAMPLES, Network, adamw, begun, data, kept, learning, trained

CHANGE = 12
"""The step after which the data of `drift` are others."""


def error(outputs: Any, batch: Any) -> Any:
    return ((outputs - batch["y"]) ** 2)[:, 0]


def tested(network: Any, **settings: Any) -> ProgressiveValidation:
    return ProgressiveValidation(network, {"error": error}, **{"window": 9, "every": 2, **settings})


def late() -> list[dict[str, Any]]:
    """Samples of which every third comes whole; the others have their label five places later, or never."""
    samples: list[dict[str, Any]] = []
    for number, example in enumerate(EXAMPLES * 2):
        whole = number % 3 == 0
        samples.append({"id": number, **(example if whole else {"x": example["x"]})})
        if number >= 5 and (number - 5) % 3 == 1:
            samples.append({"id": number - 5, "y": EXAMPLES[(number - 5) % len(EXAMPLES)]["y"]})
    return samples


class Change(RunnerItem):
    """Let the data become others after a step."""

    def on_batch(self, state: Any) -> None:
        if state.next_step > CHANGE:
            state.batch = {**state.batch, "y": state.batch["y"] + np.float32(9.0)}


def drift(folder: Path) -> Runner:
    network = Network()
    updater, test = adamw(network), tested(network)
    raised = LearningRateBoost(updater, times=4, steps=6)
    watch = DriftDetector(raised.begin, test.of("error"), longest=100)
    rings = [data(), Change(), test, watch, raised]
    return Runner(*kept(folder, every=4), *rings, *learning(network, updater=lambda _: updater))


def published(network: Any) -> list[RunnerItem]:
    smooth = MovingAverage(network, 0.7)
    publish = Publish(smooth, prepare=lambda inputs: {"x": np.array(inputs, "float32")}, finish=lambda y: y.tolist())
    return [publish, data(), smooth]


def delayed(network: Any) -> list[RunnerItem]:
    test = DelayedLabels(network, {"error": error}, window=9, every=2, label="y", pending=7)
    return [DataProvider(late(), 4, prefetch=0, collate=list), test]


LEARNING_ONLINE = {
    "progressive test": trained(lambda network: [data(), tested(network)]),
    "delayed labels": trained(delayed),
    "replay buffer": trained(lambda network: [data(), tested(network), ReplayBuffer(6, 0.7, seed=3)]),
    "drift": begun(drift, passes=None, steps=26),
    "publish": trained(published),
}
