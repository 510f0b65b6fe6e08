"""The network of ``classification``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from onion.tasks.decoding import class_probabilities
from onion.tasks.networks.heads import SentenceHead

SMALLEST = float(np.finfo(np.float32).tiny)
"""The smallest divisor for a sum of weights, so that 0 / 0 is 0."""


class Classifier(SentenceHead):
    """A head with one logit per label.

    Args:
        encoder: see SentenceHead.
        classes: the number of labels, at least 2.
        dropout: see SentenceHead.
        weights: of the labels in the loss. Default: 1 for each.
        smoothing: of the labels.
    """

    def __init__(
        self,
        encoder: nn.Layer,
        classes: int,
        dropout: float | None = None,
        weights: Sequence[float] | None = None,
        smoothing: float = 0.0,
    ) -> None:
        super().__init__(encoder, classes, dropout)
        self._weights = None if weights is None else paddle.to_tensor(weights, dtype="float32")
        self._smoothing = smoothing

    def loss(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the mean cross-entropy, a scalar; if weighted, divided by the sum of the weights.

        The loss of a batch whose weights are all 0 is 0.
        """
        labels = batch["labels"]
        if not self._smoothing:
            return functional.cross_entropy(logits, labels, weight=self._weights)
        logs = functional.log_softmax(logits)
        own = -paddle.take_along_axis(logs, labels.unsqueeze(1), 1).squeeze(1)
        each = (1 - self._smoothing) * own - self._smoothing * logs.mean(axis=1)
        if self._weights is None:
            return each.mean()
        weights = paddle.gather(self._weights, labels)
        return (each * weights).sum() / weights.sum().clip(min=SMALLEST)

    def loss_weight(self, batch: dict[str, Any]) -> float:
        """Return what the loss of a batch is divided by: its examples or, if weighted, the sum of their weights."""
        labels = batch["labels"]
        return float(len(labels) if self._weights is None else self._weights.numpy()[labels].sum(dtype=np.float64))

    def decode(self, logits: paddle.Tensor, batch: dict[str, Any]) -> list[np.ndarray]:
        """Return the probabilities ``[classes]`` of each example."""
        return class_probabilities(logits.numpy(), batch)
