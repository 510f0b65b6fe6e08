"""Engines on Paddle. It imports nothing of onion, which would choose the math library."""

from __future__ import annotations

import logging
import tempfile
from typing import Any

import paddle
from paddle.nn.functional import mse_loss

from benchmarks.loop.work import (
    BATCH,
    INPUTS,
    RATE,
    Engine,
    Example,
    Parameters,
    first_weight,
    note_call,
    taken,
)

Batch = tuple[Any, Any]


def ready(examples: list[Example]) -> list[Batch]:
    """Return pairs of tensors."""
    return [(paddle.to_tensor(x), paddle.to_tensor(y)) for x, y in examples]


def ready_fields(examples: list[Example]) -> list[dict[str, Any]]:
    """Return dicts of tensors."""
    return [{"x": x, "y": y} for x, y in ready(examples)]


class Noted(paddle.nn.Linear):  # type: ignore[misc]
    """A Linear with a clock."""

    def forward(self, x: Any) -> Any:
        note_call()
        return super().forward(x)


def initialized(linear: Any) -> Any:
    """Give a Linear(8, 1) the weights that all begin with."""
    linear.weight.set_value(first_weight())
    linear.bias.set_value(paddle.zeros([1]))
    return linear


def sgd(linear: Any) -> Any:
    """Return the optimizer."""
    return paddle.optimizer.SGD(RATE, parameters=linear.parameters())


def parameters(linear: Any) -> Parameters:
    """Return what was learned."""
    return taken(linear.weight.numpy(), linear.bias.numpy())


def bare(batches: list[Batch], callbacks: int = 0) -> Parameters:
    """The loop by hand, of batches that are tensors."""
    linear = initialized(Noted(INPUTS, 1))
    optimizer = sgd(linear)
    linear.train()
    for x, y in batches:
        loss = mse_loss(linear(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
    return parameters(linear)


def model_fit(batches: list[Batch], callbacks: int) -> Parameters:
    """paddle.Model.fit."""

    class Nothing(paddle.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_begin(self, step: int, logs: Any = None) -> None:
            pass

        def on_train_batch_end(self, step: int, logs: Any = None) -> None:
            pass

    linear = initialized(Noted(INPUTS, 1))
    model = paddle.Model(linear)
    model.prepare(sgd(linear), paddle.nn.MSELoss())
    nothing = [Nothing() for _ in range(callbacks)]
    model.fit(batches, epochs=1, verbose=0, log_freq=len(batches), callbacks=nothing or None)
    return parameters(linear)


def paddlenlp(batches: list[dict[str, Any]], callbacks: int) -> Parameters:
    """PaddleNLP's Trainer, which takes the batches from a method as they are."""
    from paddlenlp.trainer import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
    from paddlenlp.utils.log import logger

    logger.set_level(logging.getLevelName(logging.ERROR))

    class Regression(paddle.nn.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.linear = initialized(Noted(INPUTS, 1))

        def forward(self, x: Any, y: Any) -> tuple[Any]:
            return (mse_loss(self.linear(x), y),)

    class Ready(Trainer):  # type: ignore[misc]
        def get_train_dataloader(self) -> Any:
            return self.train_dataset

    class Nothing(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, *told: Any, **more: Any) -> None:
            pass

        def on_step_end(self, *told: Any, **more: Any) -> None:
            pass

    layer = Regression()
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
        nothing = [Nothing() for _ in range(callbacks)]
        trainer = Ready(layer, args=lean, train_dataset=batches, optimizers=(sgd(layer), None), callbacks=nothing)
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return parameters(layer.linear)


PADDLE = "paddlepaddle"
ENGINES = {
    "bare": Engine(bare, ready, [PADDLE]),
    "model_fit": Engine(model_fit, ready, [PADDLE]),
    "paddlenlp": Engine(paddlenlp, ready_fields, ["paddlenlp", PADDLE]),
}
