"""Two tasks over one encoder, each with its head, data and test; the best checkpoint is that of the target.

python examples/two_tasks.py OUT            trains; resumes if run again
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from onion import (
    DataProvider,
    Evaluator,
    Forward,
    GradientMachine,
    ParameterUpdater,
    Runner,
    Saver,
    TaskData,
    TaskSampler,
    Tester,
)
from onion.tasks.networks.multi_head import MultiHead
from onion.testing import toy_examples

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle


class Head(paddle.nn.Layer):
    """A number for every example; ``onion.tasks`` has heads for texts."""

    def __init__(self, encoder: paddle.nn.Layer) -> None:
        super().__init__()
        self.encoder, self.linear = encoder, paddle.nn.Linear(16, 1)

    def forward(self, batch: Any) -> paddle.Tensor:
        """Return the numbers ``[batch, 1]``."""
        return self.linear(paddle.tanh(self.encoder(batch["x"])))

    def loss(self, outputs: paddle.Tensor, batch: Any) -> paddle.Tensor:
        """Return the mean squared error."""
        return paddle.nn.functional.mse_loss(outputs, batch["y"])


class Errors(list[np.ndarray]):
    """A metric: the squared errors of a pass."""

    reset = list.clear

    def update(self, outputs: Any, batch: Any) -> None:
        """Take in a batch."""
        self.append((outputs.numpy() - batch["y"]) ** 2)

    def result(self) -> dict[str, float]:
        """Return their mean."""
        return {"error": float(np.concatenate(self).mean())}


if len(sys.argv) != 2:
    sys.exit(__doc__)
encoder = paddle.nn.Linear(8, 16)
slope, valley = Head(encoder), Head(encoder)
network = MultiHead(encoder, {"slope": slope, "valley": valley}, weights={"valley": 0.5})
slopes = toy_examples(256)
valleys = [{**each, "y": abs(each["y"])} for each in slopes]
learned = TaskData(DataProvider(slopes[:128], shuffle=True))
helping = TaskData(DataProvider(valleys[:128], shuffle=True), mix_ratio=0.5, target=False)
runner = Runner(
    Saver(sys.argv[1], every=20, monitor="slope.error", mode="min"),
    Tester(Runner(DataProvider(slopes[128:]), Evaluator(Errors()), Forward(slope)), every=20, name="slope"),
    Tester(Runner(DataProvider(valleys[128:]), Evaluator(Errors()), Forward(valley)), every=20, name="valley"),
    TaskSampler({"slope": learned, "valley": helping}),
    ParameterUpdater(paddle.optimizer.Adam(0.02, parameters=network.parameters())),
    GradientMachine(network),
)
print(runner, runner.run(passes=30).metrics, sep="\n\n")
