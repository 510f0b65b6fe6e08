"""mmengine, without any of its default hooks. It insists on torch's DataLoader, which hands out the ready batches."""

from __future__ import annotations

import logging
import tempfile
from typing import Any

import torch
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.optim import OptimWrapper
from mmengine.runner import Runner
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader

from benchmarks.loop.engines.on_torch import Batch, network, parameters, ready, sgd
from benchmarks.loop.work import Parameters

__all__ = ["LIBRARIES", "ready", "train"]

LIBRARIES = ("mmengine",)

DEFAULT_HOOKS = ("runtime_info", "timer", "sampler_seed", "logger", "param_scheduler", "checkpoint")


class Regression(BaseModel):
    """The network and its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = network()

    def forward(self, x: torch.Tensor, y: torch.Tensor, mode: str = "tensor") -> dict[str, torch.Tensor]:
        """Return the loss of a batch."""
        return {"loss": mse_loss(self.linear(x), y)}


class Nothing(Hook):
    """Hears of both ends of a batch."""

    def before_train_iter(self, *told: Any, **more: Any) -> None:
        """Do nothing."""

    def after_train_iter(self, *told: Any, **more: Any) -> None:
        """Do nothing."""


def train(batches: list[Batch], callbacks: int) -> Parameters:
    """Train."""
    model = Regression()
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(
            model,
            folder,
            train_dataloader=DataLoader(batches, batch_size=None),
            train_cfg={"by_epoch": True, "max_epochs": 1},
            optim_wrapper=OptimWrapper(sgd(model)),
            default_hooks=dict.fromkeys(DEFAULT_HOOKS),
            custom_hooks=[Nothing() for _ in range(callbacks)],
            log_level=logging.ERROR,
            experiment_name=f"loop_{id(model)}",
        )
        runner.train()
    return parameters(model.linear)
