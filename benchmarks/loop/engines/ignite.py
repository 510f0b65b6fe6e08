"""Ignite."""

from __future__ import annotations

from ignite.engine import Engine, Events
from torch.nn.functional import mse_loss

from benchmarks.loop.engines.on_torch import Batch, network, parameters, ready, sgd
from benchmarks.loop.work import Parameters

__all__ = ["LIBRARIES", "ready", "train"]

LIBRARIES = ("pytorch-ignite",)


def train(batches: list[Batch], callbacks: int) -> Parameters:
    """Train; a callback is a handler of the end of an iteration."""
    linear = network()
    optimizer = sgd(linear)
    linear.train()

    def update(engine: Engine, batch: Batch) -> None:
        x, y = batch
        loss = mse_loss(linear(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    trainer = Engine(update)
    for _ in range(callbacks):
        trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda engine: None)
    trainer.run(batches, max_epochs=1)
    return parameters(linear)
