"""One run over a stream: each sample is predicted, then trained on, once."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.online.streams import Phase
from onion import DataProvider, GradientMachine, MovingAverage, Observer, ParameterUpdater, Runner, RunnerItem
from onion.online.learning.drift import DriftDetector, LearningRateBoost
from onion.online.learning.progressive_validation import ProgressiveValidation
from onion.online.learning.replay_buffer import ReplayBuffer

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle
from paddle import nn

BATCH, RATE, TIMES, HIDDEN = 16, 1e-3, 5, 64
BIN = 100  # samples over which a point of the curve is the accuracy

VARIANTS = {
    "plain": "nothing",
    "replay": "`ReplayBuffer(1000, ratio=1.0)`",
    "drift": '`DriftDetector(boost.begin, test.of("accuracy"), change="down")`, '
    f"`LearningRateBoost(updater, {TIMES}, 60)`",
    "fast": "nothing, but the raised rate of `drift` is used from the beginning: a control, added after the first run",
    "average": "`MovingAverage(network, 0.98)`, which is what predicts",
}
"""What is added to a plain run."""


class Classifier(nn.Sequential):
    """Vectors ``[n, width]`` -> logits ``[n, 2]``, by a hidden layer."""

    def __init__(self, width: int) -> None:
        super().__init__(nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2))

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        return super().forward(batch["inputs"])

    def loss(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        return nn.functional.cross_entropy(logits, batch["labels"])


def rings_of(variant: str, network: Any, updater: ParameterUpdater) -> tuple[ProgressiveValidation, list[RunnerItem]]:
    """Return the test of a variant, and the items between it and the updater."""
    if variant == "average":
        smooth = MovingAverage(network, 0.98)
        return ProgressiveValidation(smooth.average), [smooth]
    test = ProgressiveValidation(network)
    if variant == "replay":
        return test, [ReplayBuffer(1000, ratio=1.0)]
    if variant == "drift":
        boost = LearningRateBoost(updater, TIMES, steps=60)
        return test, [DriftDetector(boost.begin, test.of("accuracy"), change="down"), boost]
    return test, []


def train(phases: Sequence[Phase], variant: str, seed: int) -> dict[str, Any]:
    """Run a variant over a stream; return its accuracies and its curve."""
    begun = perf_counter()
    paddle.seed(seed)
    network = Classifier(phases[0].inputs.shape[1])
    rate = RATE * TIMES if variant == "fast" else RATE
    updater = ParameterUpdater(paddle.optimizer.Adam(rate, parameters=network.parameters()))
    test, rings = rings_of(variant, network, updater)
    right: list[float] = []
    note = Observer(on_batch_begin=lambda state: right.extend(test.latest["accuracy"]))
    data = DataProvider(_samples(phases), BATCH, prefetch=0)
    state = Runner(data, test, note, *rings, updater, GradientMachine(network)).run(passes=1)
    found = np.array(right)
    return {
        "overall": float(found.mean()),
        "after": _after_changes(found, phases),
        "held_out": [_accuracy(test, phase) for phase in phases],
        "changes": state.metrics.get("drift_detector.changes", 0),
        "curve": found[: len(found) // BIN * BIN].reshape(-1, BIN).mean(1).tolist(),
        "seconds": perf_counter() - begun,
    }


def _samples(phases: Sequence[Phase]) -> list[dict[str, Any]]:
    return [
        {"inputs": inputs, "labels": label}
        for phase in phases
        for inputs, label in zip(phase.inputs, phase.labels, strict=True)
    ]


def _after_changes(right: np.ndarray, phases: Sequence[Phase], count: int = 1000) -> float:
    """Return the accuracy over the first samples after each change."""
    places = np.cumsum([len(phase.labels) for phase in phases])[:-1]
    return float(np.concatenate([right[place : place + count] for place in places]).mean())


def _accuracy(test: ProgressiveValidation, phase: Phase) -> float:
    """Return the accuracy, after the run, on samples that no run trains on."""
    inputs, labels = phase.held_out
    return float((test.predict({"inputs": inputs}).argmax(1) == labels).mean())
