"""Batches, a network of one layer, and examples for it."""

from __future__ import annotations

from collections.abc import Iterable
from operator import length_hint
from typing import TYPE_CHECKING, Any

from onion.device import paddle
from onion.engine.item import RunnerItem
from onion.engine.state import State

if TYPE_CHECKING:
    from collections.abc import Sequence


class Batches(RunnerItem):
    """Provide the same batches in every pass: those of an iterable, or the numbers below an integer."""

    provides_data = True

    def __init__(self, batches: Iterable[Any] | int) -> None:
        self.batches = range(batches) if isinstance(batches, int) else batches

    @property
    def batches_per_pass(self) -> int | None:
        """The number of batches; None: an iterable without a length."""
        return length_hint(self.batches) or None

    def identity(self) -> dict[str, Any]:
        """Return nothing: a resumed test may use other batches."""
        return {}

    def on_pass(self, state: State) -> None:
        """Put the batches of this pass on the state."""
        state.batches = iter(self.batches)


def toy_network(inputs: int = 8, seed: int = 0) -> Any:
    """Return a linear regression: a Paddle Layer for batches ``{"x": [n, inputs], "y": [n, 1]}`` of float32.

    ``network(batch)`` gives the predictions ``[n, 1]``, ``network.loss(outputs, batch)`` the mean squared error.
    """
    framework = paddle()

    class ToyNetwork(framework.nn.Layer):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.linear = framework.nn.Linear(inputs, 1)

        def forward(self, batch: dict[str, Any]) -> Any:
            return self.linear(batch["x"])

        def loss(self, outputs: Any, batch: dict[str, Any]) -> Any:
            return framework.nn.functional.mse_loss(outputs, batch["y"])

    framework.seed(seed)
    return ToyNetwork()


def toy_examples(count: int = 32, inputs: int = 8, seed: int = 0) -> Sequence[dict[str, Any]]:
    """Return examples ``{"x": [inputs], "y": [1]}`` of a noisy linear function; equal seeds, equal examples."""
    import numpy as np

    random = np.random.default_rng(seed)
    slope = random.normal(size=inputs)
    x = random.normal(size=(count, inputs))
    y = x @ slope + 0.1 * random.normal(size=count)
    return [{"x": a.astype("float32"), "y": b.astype("float32").reshape(1)} for a, b in zip(x, y, strict=True)]
