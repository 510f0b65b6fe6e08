"""The loop by hand on Paddle, of batches of arrays, with onion's ``to_tensors`` in the place of Paddle's."""

from __future__ import annotations

from benchmarks.loop.engines.on_onion import Fields, mse_loss, network, ready
from benchmarks.loop.engines.on_paddle import parameters, sgd
from benchmarks.loop.work import Parameters
from onion.device import to_tensors

__all__ = ["LIBRARIES", "ready", "train"]

LIBRARIES = ("paddlepaddle",)


def train(batches: list[Fields], callbacks: int = 0) -> Parameters:
    """Train."""
    layer = network()
    optimizer = sgd(layer)
    layer.train()
    for batch in batches:
        tensors = to_tensors(batch)
        loss = mse_loss(layer(tensors), tensors["y"])
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
    return parameters(layer)
