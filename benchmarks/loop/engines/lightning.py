"""Lightning, with the setting it has for measuring its own loss: no log, no checkpoint, no bar, no summary."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from typing import Any

import lightning
import torch
from torch.nn.functional import mse_loss

from benchmarks.loop.engines.on_torch import Batch, network, parameters, ready, sgd
from benchmarks.loop.work import Parameters

__all__ = ["LIBRARIES", "ready", "train"]

LIBRARIES = ("lightning",)

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")


class Regression(lightning.LightningModule):
    """The network, its loss and its optimizer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = network()

    def training_step(self, batch: Batch, number: int) -> torch.Tensor:
        """Return the loss of a batch."""
        x, y = batch
        return mse_loss(self.linear(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer."""
        return sgd(self.linear)


class Ready:
    """The batches; a list would be taken for several sources."""

    def __init__(self, batches: list[Batch]) -> None:
        self._batches = batches

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches)


class Nothing(lightning.Callback):
    """Hears of both ends of a batch."""

    def on_train_batch_start(self, *told: Any) -> None:
        """Do nothing."""

    def on_train_batch_end(self, *told: Any) -> None:
        """Do nothing."""


def train(batches: list[Batch], callbacks: int) -> Parameters:
    """Train."""
    module = Regression()
    trainer = lightning.Trainer(
        barebones=True, accelerator="cpu", devices=1, max_epochs=1, callbacks=[Nothing() for _ in range(callbacks)]
    )
    trainer.fit(module, Ready(batches))
    return parameters(module.linear)
