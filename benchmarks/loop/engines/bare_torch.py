"""The loop by hand on torch."""

from __future__ import annotations

from torch.nn.functional import mse_loss

from benchmarks.loop.engines.on_torch import Batch, network, parameters, ready, sgd
from benchmarks.loop.work import Parameters

__all__ = ["LIBRARIES", "ready", "train"]

LIBRARIES = ("torch",)


def train(batches: list[Batch], callbacks: int = 0) -> Parameters:
    """Train."""
    linear = network()
    optimizer = sgd(linear)
    linear.train()
    for x, y in batches:
        loss = mse_loss(linear(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return parameters(linear)
