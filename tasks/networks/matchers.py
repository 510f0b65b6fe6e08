"""The networks of ``matching``: trained on judged pairs of texts, or on pairs of a better and a worse second text."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from onion.tasks.decoding import match_scores, pair_scores
from onion.tasks.networks.classifier import Classifier
from onion.tasks.networks.heads import SentenceHead


class PointwiseMatcher(Classifier):
    """A classifier with two labels; the score is the probability of the second."""

    def decode(self, logits: paddle.Tensor, batch: dict[str, Any]) -> list[np.ndarray]:
        """Return the score of each example, float64."""
        return match_scores(logits.numpy(), batch)


class PairwiseMatcher(SentenceHead):
    """A head with one score per row, from 0 to 1, trained on the difference of two (PaddlePALM's ``Match``).

    Args:
        encoder: see SentenceHead.
        margin: the desired difference of the scores of a pair.
        dropout: see SentenceHead.
    """

    def __init__(self, encoder: nn.Layer, margin: float = 0.5, dropout: float | None = None) -> None:
        super().__init__(encoder, 1, dropout)
        self._margin = margin

    def loss(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the mean hinge loss ``max(0, margin - better + worse)``, a scalar."""
        better, worse = functional.sigmoid(logits).reshape([2, -1])
        return functional.relu(self._margin - better + worse).mean()

    def importance_loss(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the mean difference, a scalar: :meth:`loss` without the margin, beyond which it has no gradient."""
        better, worse = functional.sigmoid(logits).reshape([2, -1])
        return (worse - better).mean()

    def decode(self, logits: paddle.Tensor, batch: dict[str, Any]) -> list[np.ndarray]:
        """Return the score of each example, float64; of a pair ``[2]``, those of the better and the worse text."""
        return pair_scores(logits.numpy(), batch)
