"""The network of ``regression``."""

from __future__ import annotations

from typing import Any

import paddle
from paddle import nn
from paddle.nn import functional

from onion.tasks.decoding import numbers
from onion.tasks.networks.heads import SentenceHead


class Regressor(SentenceHead):
    """A head with one number per example.

    Args:
        encoder: see SentenceHead.
        dropout: see SentenceHead.
    """

    def __init__(self, encoder: nn.Layer, dropout: float | None = None) -> None:
        super().__init__(encoder, 1, dropout)

    def loss(self, outputs: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the mean squared error, a scalar."""
        return functional.mse_loss(outputs.squeeze(1), batch["labels"])

    def decode(self, outputs: paddle.Tensor, batch: dict[str, Any]) -> list[float]:
        """Return the number of each example."""
        return numbers(outputs.numpy(), batch)
