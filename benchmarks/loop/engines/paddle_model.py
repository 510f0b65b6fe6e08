"""paddle.Model.fit."""

from __future__ import annotations

from typing import Any

import paddle

from benchmarks.loop.engines.on_paddle import Batch, network, parameters, ready, sgd
from benchmarks.loop.work import Parameters

__all__ = ["LIBRARIES", "ready", "train"]

LIBRARIES = ("paddlepaddle",)


class Nothing(paddle.callbacks.Callback):  # type: ignore[misc]
    """Hears of both ends of a batch."""

    def on_train_batch_begin(self, step: int, logs: Any = None) -> None:
        """Do nothing."""

    def on_train_batch_end(self, step: int, logs: Any = None) -> None:
        """Do nothing."""


def train(batches: list[Batch], callbacks: int) -> Parameters:
    """Train."""
    linear = network()
    model = paddle.Model(linear)
    model.prepare(sgd(linear), paddle.nn.MSELoss())
    nothing = [Nothing() for _ in range(callbacks)]
    model.fit(batches, epochs=1, verbose=0, log_freq=len(batches), callbacks=nothing or None)
    return parameters(linear)
