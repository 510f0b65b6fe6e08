"""A complete run: a nested test onion, checkpoints, a log, early stopping; and its picture.

python examples/nested_test.py OUT            trains; resumes if run again
python examples/nested_test.py --draw FILE    draws the onion
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from onion import (
    DataProvider,
    EarlyStopping,
    Evaluator,
    Forward,
    GradientMachine,
    Logger,
    ParameterUpdater,
    Progress,
    Runner,
    Saver,
    Signals,
    Tester,
)
from onion.testing import toy_examples, toy_network

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle


class Error:
    """The mean squared error over a pass: a custom metric."""

    def reset(self) -> None:
        """Forget all batches."""
        self.squares: list[np.ndarray] = []

    def update(self, outputs: Any, batch: Any) -> None:
        """Take in a batch."""
        self.squares.append((np.asarray(outputs) - batch["y"]) ** 2)

    def result(self) -> dict[str, float]:
        """Return the mean."""
        return {"error": float(np.concatenate(self.squares).mean())}


def onion(out: Path) -> Runner:
    """Compose the onion."""
    examples = toy_examples(512)
    network = toy_network()
    schedule = paddle.optimizer.lr.CosineAnnealingDecay(0.05, T_max=300)
    optimizer = paddle.optimizer.Adam(schedule, parameters=network.parameters())
    test = Runner(DataProvider(examples[256:], 64), Evaluator(Error()), Forward(network))
    return Runner(
        Progress(),
        Signals(),
        Saver(out, every=50, monitor="tester.error", mode="min"),
        Logger(out / "metrics.jsonl", every=50),
        EarlyStopping("tester.error", patience=5, mode="min"),
        Tester(test, every=20),
        DataProvider(examples[:256], shuffle=True),
        ParameterUpdater(optimizer),
        GradientMachine(network),
    )


if len(sys.argv) == 3 and sys.argv[1] == "--draw":
    onion(Path("out")).draw(sys.argv[2])
elif len(sys.argv) == 2:
    runner = onion(Path(sys.argv[1]))
    print(runner)
    state = runner.run(passes=100)
    print(f"stopped at step {state.step}: {state.stopped or 'all passes are done'}; {state.metrics}")
else:
    sys.exit(__doc__)
