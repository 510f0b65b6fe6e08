"""PaddleNLP's Trainer, which takes the batches from a method as they are."""

from __future__ import annotations

import logging
import tempfile
from typing import Any

import paddle
from paddle.nn.functional import mse_loss
from paddlenlp.trainer import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from paddlenlp.utils.log import logger

from benchmarks.loop.engines import on_paddle
from benchmarks.loop.engines.on_paddle import network, parameters, sgd
from benchmarks.loop.work import BATCH, Example, Parameters

LIBRARIES = ("paddlenlp", "paddlepaddle")

Fields = dict[str, Any]

logger.set_level(logging.getLevelName(logging.ERROR))


class Regression(paddle.nn.Layer):  # type: ignore[misc]
    """A network that returns its loss, as the Trainer wants it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = network()

    def forward(self, x: Any, y: Any) -> tuple[Any]:
        """Return the loss of a batch."""
        return (mse_loss(self.linear(x), y),)


class Ready(Trainer):  # type: ignore[misc]
    """A Trainer whose batches are ready."""

    def get_train_dataloader(self) -> Any:
        """Return them."""
        return self.train_dataset


class Nothing(TrainerCallback):  # type: ignore[misc]
    """Hears of both ends of a batch."""

    def on_step_begin(self, *told: Any, **more: Any) -> None:
        """Do nothing."""

    def on_step_end(self, *told: Any, **more: Any) -> None:
        """Do nothing."""


def ready(examples: list[Example]) -> list[Fields]:
    """Return dicts of tensors."""
    return [{"x": x, "y": y} for x, y in on_paddle.ready(examples)]


def train(batches: list[Fields], callbacks: int) -> Parameters:
    """Train."""
    layer = Regression()
    optimizer = sgd(layer)
    with tempfile.TemporaryDirectory() as folder:
        lean = TrainingArguments(
            folder,
            num_train_epochs=1,
            per_device_train_batch_size=BATCH,
            max_grad_norm=0.0,
            device="cpu",
            logging_strategy="no",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = Ready(
            layer,
            args=lean,
            train_dataset=batches,
            optimizers=(optimizer, None),
            callbacks=[Nothing() for _ in range(callbacks)],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return parameters(layer.linear)
