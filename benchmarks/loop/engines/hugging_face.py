"""Hugging Face's Trainer, which takes the batches from a method as they are."""

from __future__ import annotations

import tempfile
from typing import Any

import torch
from torch.nn.functional import mse_loss
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.utils.logging import set_verbosity_error

from benchmarks.loop.engines import on_torch
from benchmarks.loop.engines.on_torch import network, parameters, sgd
from benchmarks.loop.work import BATCH, Example, Parameters

LIBRARIES = ("transformers", "accelerate")

set_verbosity_error()

Fields = dict[str, torch.Tensor]


class Regression(torch.nn.Module):
    """A network that returns its loss, as the Trainer wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = network()

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the loss of a batch."""
        return {"loss": mse_loss(self.linear(x), y)}


class Ready(Trainer):
    """A Trainer whose batches are ready."""

    def get_train_dataloader(self) -> Any:
        """Return them."""
        return self.train_dataset


class Nothing(TrainerCallback):
    """Hears of both ends of a batch."""

    def on_step_begin(self, *told: Any, **more: Any) -> None:
        """Do nothing."""

    def on_step_end(self, *told: Any, **more: Any) -> None:
        """Do nothing."""


def train(batches: list[Fields], callbacks: int) -> Parameters:
    """Train."""
    module = Regression()
    optimizer = sgd(module)
    with tempfile.TemporaryDirectory() as folder:
        lean = TrainingArguments(
            folder,
            num_train_epochs=1,
            per_device_train_batch_size=BATCH,
            max_grad_norm=0.0,
            use_cpu=True,
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            logging_nan_inf_filter=False,
        )
        constant = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
        trainer = Ready(
            module,
            lean,
            train_dataset=batches,
            optimizers=(optimizer, constant),
            callbacks=[Nothing() for _ in range(callbacks)],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return parameters(module.linear)


def ready(examples: list[Example]) -> list[Fields]:
    """Return dicts of tensors."""
    return [{"x": x, "y": y} for x, y in on_torch.ready(examples)]
