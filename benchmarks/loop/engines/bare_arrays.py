"""The loop by hand on Paddle, of batches of arrays, as an onion has them."""

from __future__ import annotations

from typing import Any

from benchmarks.loop.engines.on_onion import Fields, mse_loss, network, ready
from benchmarks.loop.engines.on_paddle import parameters, sgd
from benchmarks.loop.work import Parameters
from onion.device import paddle

__all__ = ["LIBRARIES", "ready", "train"]

LIBRARIES = ("paddlepaddle",)

to_tensor: Any = paddle().to_tensor


def train(batches: list[Fields], callbacks: int = 0) -> Parameters:
    """Train."""
    layer = network()
    optimizer = sgd(layer)
    layer.train()
    for batch in batches:
        tensors = {"x": to_tensor(batch["x"]), "y": to_tensor(batch["y"])}
        loss = mse_loss(layer(tensors), tensors["y"])
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
    return parameters(layer)
