"""Engines on Paddle. It imports nothing of onion, which would choose the math library."""

from __future__ import annotations

import logging
import tempfile
from typing import Any

import paddle
from paddle.nn.functional import mse_loss

from benchmarks.loop import work
from benchmarks.loop.work import note_call

Batch = tuple[Any, Any]


class Noted(paddle.nn.Linear):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        note_call()
        return super().forward(x)


def initialized(linear: Any) -> Any:
    linear.weight.set_value(work.first_weight())
    linear.bias.set_value(paddle.zeros([1]))
    return linear


def sgd(linear: Any) -> Any:
    return paddle.optimizer.SGD(work.RATE, parameters=linear.parameters())


def parameters(linear: Any) -> work.Parameters:
    return work.taken(linear.weight.numpy(), linear.bias.numpy())


def bare(batches: list[Batch], callbacks: int = 0) -> work.Parameters:
    """The loop by hand, of batches that are tensors."""
    linear = initialized(Noted(work.INPUTS, 1))
    optimizer = sgd(linear)
    linear.train()
    for x, y in batches:
        loss = mse_loss(linear(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
    return parameters(linear)


def model_fit(batches: list[Batch], callbacks: int) -> work.Parameters:
    class Nothing(paddle.callbacks.Callback):  # type: ignore[misc]
        def on_train_batch_begin(self, step: int, logs: Any = None) -> None:
            pass

        def on_train_batch_end(self, step: int, logs: Any = None) -> None:
            pass

    linear = initialized(Noted(work.INPUTS, 1))
    model = paddle.Model(linear)
    model.prepare(sgd(linear), paddle.nn.MSELoss())
    nothing = [Nothing() for _ in range(callbacks)]
    model.fit(batches, epochs=1, verbose=0, log_freq=len(batches), callbacks=nothing or None)
    return parameters(linear)


def paddlenlp(batches: list[dict[str, Any]], callbacks: int) -> work.Parameters:
    """PaddleNLP's Trainer, which takes the batches from a method as they are."""
    from paddlenlp.trainer import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
    from paddlenlp.utils.log import logger

    logger.set_level(logging.getLevelName(logging.ERROR))

    class Regression(paddle.nn.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.linear = initialized(Noted(work.INPUTS, 1))

        def forward(self, x: Any, y: Any) -> tuple[Any]:
            return (mse_loss(self.linear(x), y),)

    layer = Regression()
    with tempfile.TemporaryDirectory() as folder:
        lean = TrainingArguments(folder, **work.TRAINER, device="cpu", report_to=[])
        nothing = work.empty_callbacks(TrainerCallback, ["on_step_begin", "on_step_end"], callbacks)
        given = {"model": layer, "args": lean, "optimizers": (sgd(layer), None), "callbacks": nothing}
        work.run_trainer(Trainer, PrinterCallback, batches, **given)
    return parameters(layer.linear)


PADDLE = "paddlepaddle"
ready = work.ready_pairs(paddle.to_tensor)
ENGINES = {
    "bare": work.Engine(bare, ready, [PADDLE]),
    "model_fit": work.Engine(model_fit, ready, [PADDLE]),
    "paddlenlp": work.Engine(paddlenlp, work.ready_fields(paddle.to_tensor), ["paddlenlp", PADDLE]),
}
