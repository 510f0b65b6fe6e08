"""A mean teacher (Tarvainen and Valpola 2017) on two moons of 500 points, of which 8 have a label.

python examples/mean_teacher.py [OUT]            given OUT, it saves there, and resumes if run again

The student learns the labels, and to say of every point, though disturbed by noise, what its moving average says. The
last line is JSON: accuracy on other points of the student, of the teacher, and of a student with the 8 labels alone.
"""

import json
import sys
from typing import Any

import numpy as np

from onion import DataProvider, Forward, GradientMachine, MovingAverage, OutputsToBatch, ParameterUpdater, Runner, Saver

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle
from paddle.nn import Linear, ReLU, functional

KNOWN, STEPS, NOISE, CONSISTENCY = 8, 800, 0.15, 10.0


class Network(paddle.nn.Sequential):
    """Points ``[n, 2]`` -> logits ``[n, 2]``."""

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the logits; in training, of points with noise."""
        points = batch["points"]
        return super().forward(points + NOISE * paddle.randn(points.shape) if self.training else points)

    def loss(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the cross-entropy of the first points, whose labels are known, and how far all are from a teacher."""
        loss = functional.cross_entropy(logits[:KNOWN], batch["labels"][:KNOWN])
        if "teacher" in batch:
            loss += CONSISTENCY * functional.mse_loss(functional.softmax(logits), functional.softmax(batch["teacher"]))
        return loss


def two_moons(count: int, seed: int) -> list[dict[str, Any]]:
    """Return points of two half circles that reach into each other."""
    labels, random = np.arange(count) % 2, np.random.default_rng(seed)
    angles = random.uniform(0, np.pi, count)
    moon = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points = np.where(labels[:, None], [1, 0.5] - moon, moon) + random.normal(0, 0.1, moon.shape)
    return [{"points": point, "labels": label} for point, label in zip(points.astype("float32"), labels, strict=True)]


def begin() -> tuple[Network, ParameterUpdater]:
    """Return a network, always the same, and what moves it."""
    paddle.seed(1)
    network = Network(Linear(2, 10), ReLU(), Linear(10, 10), ReLU(), Linear(10, 10), ReLU(), Linear(10, 2))
    return network, ParameterUpdater(paddle.optimizer.Adam(0.01, parameters=network.parameters()))


def accuracy(network: Network) -> float:
    """Measure a network on other points."""
    state = Runner(DataProvider(two_moons(1000, seed=0), 1000), Forward(network)).run(passes=1)
    return float((state.outputs.numpy().argmax(1) == state.batch["labels"]).mean())


points = two_moons(500, seed=1)
alone, updater = begin()
Runner(DataProvider(points[:KNOWN]), updater, GradientMachine(alone)).run(steps=STEPS)
student, updater = begin()
teacher = MovingAverage(student, decay=0.99)
runner = Runner(
    *(Saver(folder, every=100) for folder in sys.argv[1:]),
    DataProvider(points, len(points)),
    teacher,
    Forward(teacher.average),
    OutputsToBatch("teacher"),
    updater,
    GradientMachine(student),
)
print(runner)
runner.run(steps=STEPS)
figures = {"student": accuracy(student), "teacher": accuracy(teacher.average), "alone": accuracy(alone)}
print(json.dumps({"example": "mean_teacher", **figures}))
