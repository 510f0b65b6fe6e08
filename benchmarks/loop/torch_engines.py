"""Engines on torch. Each imports its library itself, so that a process holds no other one."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.functional import mse_loss

from benchmarks.loop import work
from benchmarks.loop.work import note_call

Batch = tuple[torch.Tensor, torch.Tensor]


class Noted(torch.nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        note_call()
        return super().forward(x)


def network() -> Noted:
    linear = Noted(work.INPUTS, 1)
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(work.first_weight().T))
        linear.bias.zero_()
    return linear


def sgd(linear: torch.nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD(linear.parameters(), lr=work.RATE)


def parameters(linear: torch.nn.Linear) -> work.Parameters:
    return work.taken(linear.weight.detach(), linear.bias.detach())


def bare(batches: list[Batch], callbacks: int = 0) -> work.Parameters:
    linear = network()
    optimizer = sgd(linear)
    linear.train()
    for x, y in batches:
        loss = mse_loss(linear(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return parameters(linear)


def ignite(batches: list[Batch], callbacks: int) -> work.Parameters:
    from ignite.engine import Engine as Ignite
    from ignite.engine import Events

    linear = network()
    optimizer = sgd(linear)
    linear.train()

    def update(engine: Any, batch: Batch) -> None:
        x, y = batch
        loss = mse_loss(linear(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    trainer = Ignite(update)
    for _ in range(callbacks):
        trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda engine: None)
    trainer.run(batches, max_epochs=1)
    return parameters(linear)


def lightning(batches: list[Batch], callbacks: int) -> work.Parameters:
    """Lightning, with the setting it has for measuring its own loss: no log, no checkpoint, no bar, no summary."""
    import lightning as library

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")

    class Regression(library.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.linear = network()

        def training_step(self, batch: Batch, number: int) -> torch.Tensor:
            x, y = batch
            return mse_loss(self.linear(x), y)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return sgd(self.linear)

    class Ready:
        """The batches; a list would be taken for several sources."""

        def __len__(self) -> int:
            return len(batches)

        def __iter__(self) -> Iterator[Batch]:
            return iter(batches)

    class Nothing(library.Callback):
        def on_train_batch_start(self, *told: Any) -> None:
            pass

        def on_train_batch_end(self, *told: Any) -> None:
            pass

    module = Regression()
    nothing = [Nothing() for _ in range(callbacks)]
    trainer = library.Trainer(barebones=True, accelerator="cpu", devices=1, max_epochs=1, callbacks=nothing)
    trainer.fit(module, Ready())
    return parameters(module.linear)


def mmengine(batches: list[Batch], callbacks: int) -> work.Parameters:
    """mmengine, without any of its default hooks; it takes torch's DataLoader only, which hands out the batches."""
    from mmengine.hooks import Hook
    from mmengine.model import BaseModel
    from mmengine.optim import OptimWrapper
    from mmengine.runner import Runner
    from torch.utils.data import DataLoader

    class Regression(BaseModel):
        def __init__(self) -> None:
            super().__init__()
            self.linear = network()

        def forward(self, x: torch.Tensor, y: torch.Tensor, mode: str = "tensor") -> dict[str, torch.Tensor]:
            return {"loss": mse_loss(self.linear(x), y)}

    default_hooks = ("runtime_info", "timer", "sampler_seed", "logger", "param_scheduler", "checkpoint")
    model = Regression()
    with tempfile.TemporaryDirectory() as folder:
        Runner(
            model,
            folder,
            train_dataloader=DataLoader(batches, batch_size=None),
            train_cfg={"by_epoch": True, "max_epochs": 1},
            optim_wrapper=OptimWrapper(sgd(model)),
            default_hooks=dict.fromkeys(default_hooks),
            custom_hooks=work.empty_callbacks(Hook, ["before_train_iter", "after_train_iter"], callbacks),
            log_level=logging.ERROR,
            experiment_name=f"loop_{id(model)}",
        ).train()
    return parameters(model.linear)


def hugging_face(batches: list[dict[str, torch.Tensor]], callbacks: int) -> work.Parameters:
    """Hugging Face's Trainer, which takes the batches from a method as they are."""
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
    from transformers.utils.logging import set_verbosity_error

    set_verbosity_error()

    class Regression(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = network()

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": mse_loss(self.linear(x), y)}

    module = Regression()
    optimizer = sgd(module)
    constant = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    with tempfile.TemporaryDirectory() as folder:
        lean = TrainingArguments(folder, **work.TRAINER, use_cpu=True, report_to="none", logging_nan_inf_filter=False)
        nothing = work.empty_callbacks(TrainerCallback, ["on_step_begin", "on_step_end"], callbacks)
        given = {"model": module, "args": lean, "optimizers": (optimizer, constant), "callbacks": nothing}
        work.run_trainer(Trainer, PrinterCallback, batches, **given)
    return parameters(module.linear)


def keras(batches: list[Batch], callbacks: int) -> work.Parameters:
    """Keras on torch.

    Without any callback it reports the ends of batches to a pool of threads, which takes longer than one callback
    here. So one that does nothing is always there.
    """
    os.environ["KERAS_BACKEND"] = "torch"
    import keras as library

    class Dense(library.layers.Dense):
        def call(self, x: Any) -> Any:
            note_call()
            return super().call(x)

    class Nothing(library.callbacks.Callback):
        def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
            pass

        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            pass

    dense = Dense(1)
    model = library.Sequential([library.Input([work.INPUTS]), dense])
    dense.kernel.assign(work.first_weight())
    model.compile(optimizer=library.optimizers.SGD(work.RATE), loss="mse", jit_compile=False)
    nothing = [Nothing() for _ in range(1 + callbacks)]
    model.fit((batch for batch in batches), steps_per_epoch=len(batches), epochs=1, verbose=0, callbacks=nothing)
    return work.taken(library.ops.convert_to_numpy(dense.kernel), library.ops.convert_to_numpy(dense.bias))


ready = work.ready_pairs(torch.from_numpy)
ENGINES = {
    "bare": work.Engine(bare, ready, ["torch"]),
    "ignite": work.Engine(ignite, ready, ["pytorch-ignite"]),
    "lightning": work.Engine(lightning, ready, ["lightning"]),
    "mmengine": work.Engine(mmengine, ready, ["mmengine"]),
    "hugging_face": work.Engine(hugging_face, work.ready_fields(torch.from_numpy), ["transformers", "accelerate"]),
    "keras": work.Engine(keras, ready, ["keras"]),
}
