"""Learn from a stream whose rule changes in the middle, and detect it.

python examples/online_drift.py OUT      makes OUT/samples.db, 6,000 points; resumes if run again

A point of the plane is 1 on one side of a line and 0 on the other; after half of the points the line has turned by 120
degrees. Each is predicted before it is trained on, once. A watch over the accuracy raises the learning rate for 50
steps when it falls. The last line is JSON: the accuracy of every 1,000 points, with the watch and without.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from onion import GradientMachine, Logger, ParameterUpdater, Runner, Saver
from onion.online import Spool, SpoolWriter
from onion.online.learning.drift import DriftDetector, LearningRateBoost
from onion.online.learning.progressive_validation import ProgressiveValidation
from onion.online.stream.stream_provider import StreamProvider

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

POINTS, CHANGE, BATCH = 6000, 3000, 20


class Classifier(paddle.nn.Linear):
    """Points ``[n, 2]`` -> logits ``[n, 2]``."""

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the logits."""
        return super().forward(batch["point"])

    def loss(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the cross-entropy."""
        return paddle.nn.functional.cross_entropy(logits, batch["labels"])


def samples() -> list[dict[str, Any]]:
    """Return the stream, as a producer would send it."""
    points = np.random.default_rng(1).normal(size=(POINTS, 2))
    angles = np.where(np.arange(POINTS) < CHANGE, 0, np.deg2rad(120))
    labels = points[:, 0] * np.cos(angles) + points[:, 1] * np.sin(angles) > 0
    return [{"point": point.tolist(), "labels": int(label)} for point, label in zip(points, labels, strict=True)]


def learned(out: Path, watched: bool) -> list[float]:
    """Learn the stream; return the accuracy of every 1,000 points."""
    paddle.seed(1)
    network = Classifier(2, 2)
    updater = ParameterUpdater(paddle.optimizer.SGD(0.05, parameters=network.parameters()))
    test, raised = ProgressiveValidation(network, every=1000 // BATCH), LearningRateBoost(updater, times=10, steps=50)
    watch = DriftDetector(raised.begin, test.of("accuracy"), change="down")
    folder = out / ("watched" if watched else "plain")
    runner = Runner(
        Saver(folder, every=100),
        Logger(folder / "metrics.jsonl"),
        StreamProvider(Spool(out / "samples.db"), BATCH, max_wait=0, pass_every=POINTS),
        test,
        *([watch, raised] if watched else []),
        updater,
        GradientMachine(network),
    )
    print(runner)
    runner.run(passes=1)
    rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [round(row["progressive.accuracy"], 3) for row in rows if "progressive.accuracy" in row]


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
    out.mkdir(parents=True, exist_ok=True)
    with SpoolWriter(out / "samples.db") as writer:
        writer.write(samples(), cursor="all")
    print(json.dumps({"example": "online_drift", "watched": learned(out, True), "plain": learned(out, False)}))
