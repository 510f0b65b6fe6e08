"""Keras on torch.

Without any callback it tells the ends of batches to a pool of threads, which takes longer than telling one callback
here. So one that does nothing is always there.
"""

from __future__ import annotations

import os
from typing import Any

os.environ["KERAS_BACKEND"] = "torch"

import keras

from benchmarks.loop.engines.on_torch import Batch, ready
from benchmarks.loop.work import INPUTS, RATE, Parameters, first_weight, note_call, taken

__all__ = ["LIBRARIES", "ready", "train"]

LIBRARIES = ("keras",)


class Noted(keras.layers.Dense):
    """A Dense with a clock."""

    def call(self, x: Any) -> Any:
        """Note the call."""
        note_call()
        return super().call(x)


class Nothing(keras.callbacks.Callback):
    """Hears of both ends of a batch."""

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        """Do nothing."""

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        """Do nothing."""


def train(batches: list[Batch], callbacks: int) -> Parameters:
    """Train."""
    dense = Noted(1)
    model = keras.Sequential([keras.Input([INPUTS]), dense])
    dense.kernel.assign(first_weight())
    model.compile(optimizer=keras.optimizers.SGD(RATE), loss="mse", jit_compile=False)
    model.fit(
        (batch for batch in batches),
        steps_per_epoch=len(batches),
        epochs=1,
        verbose=0,
        callbacks=[Nothing() for _ in range(1 + callbacks)],
    )
    return taken(keras.ops.convert_to_numpy(dense.kernel), keras.ops.convert_to_numpy(dense.bias))
