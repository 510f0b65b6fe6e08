"""What the onions and their bare loop share: batches of arrays, and a network that is called with a batch."""

from __future__ import annotations

from typing import Any

from onion import DataProvider, GradientMachine, ParameterUpdater, Runner, RunnerItem
from onion.device import paddle, use_threads

# isort: split
# onion comes before Paddle, which on_paddle imports
from benchmarks.loop.engines.on_paddle import Noted, begun, parameters, sgd
from benchmarks.loop.work import INPUTS, Example, Floats, Parameters

use_threads()

mse_loss: Any = paddle().nn.functional.mse_loss
Fields = dict[str, Floats]


class Regression(Noted):
    """Linear(8, 1) on a batch."""

    def forward(self, batch: dict[str, Any]) -> Any:
        """Predict y from x."""
        return super().forward(batch["x"])

    def loss(self, outputs: Any, batch: dict[str, Any]) -> Any:
        """Return the mean squared error."""
        return mse_loss(outputs, batch["y"])


def ready(examples: list[Example]) -> list[Fields]:
    """Return dicts of arrays."""
    return [{"x": x, "y": y} for x, y in examples]


def network() -> Regression:
    """Return a new network, always the same."""
    return begun(Regression(INPUTS, 1))


def trained(batches: list[Fields], layer: Regression, *around: RunnerItem) -> Parameters:
    """Train a network in the three items of an onion, and further ones around them.

    The list is a source whose examples are batches, so that what DataProvider costs is counted.
    """
    Runner(
        *around,
        DataProvider(batches, 1, collate=lambda examples: examples[0], prefetch=0),
        ParameterUpdater(sgd(layer)),
        GradientMachine(layer),
    ).run(passes=1)
    return parameters(layer)
