"""What the engines on Paddle share: batches, network, optimizer."""

from __future__ import annotations

from typing import Any

import paddle

from benchmarks.loop.work import INPUTS, RATE, Example, Parameters, first_weight, note_call, taken

Batch = tuple[Any, Any]


def ready(examples: list[Example]) -> list[Batch]:
    """Return pairs of tensors."""
    return [(paddle.to_tensor(x), paddle.to_tensor(y)) for x, y in examples]


class Noted(paddle.nn.Linear):  # type: ignore[misc]
    """A Linear with a clock."""

    def forward(self, x: Any) -> Any:
        """Note the call."""
        note_call()
        return super().forward(x)


def network() -> Any:
    """Return a new Linear(8, 1), always the same."""
    return begun(Noted(INPUTS, 1))


def begun(linear: Any) -> Any:
    """Let a Linear(8, 1) begin where all do."""
    linear.weight.set_value(first_weight())
    linear.bias.set_value(paddle.zeros([1]))
    return linear


def sgd(linear: Any) -> Any:
    """Return the optimizer."""
    return paddle.optimizer.SGD(RATE, parameters=linear.parameters())


def parameters(linear: Any) -> Parameters:
    """Return what was learned."""
    return taken(linear.weight.numpy(), linear.bias.numpy())
