"""The loop by hand on Paddle, of batches that are tensors."""

from __future__ import annotations

from paddle.nn.functional import mse_loss

from benchmarks.loop.engines.on_paddle import Batch, network, parameters, ready, sgd
from benchmarks.loop.work import Parameters

__all__ = ["LIBRARIES", "ready", "train"]

LIBRARIES = ("paddlepaddle",)


def train(batches: list[Batch], callbacks: int = 0) -> Parameters:
    """Train."""
    linear = network()
    optimizer = sgd(linear)
    linear.train()
    for x, y in batches:
        loss = mse_loss(linear(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
    return parameters(linear)
