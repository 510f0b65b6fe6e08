"""The network of ``question-answering``."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.nn import functional

from onion.tasks.batches import mask_of
from onion.tasks.networks.heads import TokenHead
from onion.tasks.question_answering.answers import Spans, window_spans
from onion.tasks.question_answering.positions import NOWHERE, UNKNOWN

FAR_BELOW = -1e4
"""Added to the logits of padding; representable in half precision."""


class Reader(TokenHead):
    """A head with two logits per token: for an answer that begins there, and for one that ends there.

    There is no dropout before it, as in BERT and ERNIE.

    Args:
        encoder: see TokenHead.
        most: the number of spans returned for each window.
        longest: the maximum number of tokens of an answer.
    """

    def __init__(self, encoder: nn.Layer, most: int, longest: int) -> None:
        super().__init__(encoder, 2, dropout=0.0)
        self._most, self._longest = most, longest
        self._cls_is_last = getattr(encoder, "cls_is_last", False)

    def loss(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the mean of the cross-entropies of the answers' begins and ends, a scalar.

        Both are over the tokens of a window, without padding. Windows with unknown answers are not counted.
        """
        padding = np.where(mask_of(batch), 0.0, FAR_BELOW).astype(np.float32)
        scores = (logits + paddle.to_tensor(padding).unsqueeze(2)).transpose([0, 2, 1])
        labels = self._placed(batch)
        total = functional.cross_entropy(scores, labels.unsqueeze(2), ignore_index=UNKNOWN, reduction="sum")
        # Paddle's mean would count ignored ones, since the index is negative.
        return total / (labels != UNKNOWN).astype(total.dtype).sum().clip(min=1.0)

    def loss_weight(self, batch: dict[str, Any]) -> int:
        """Return the number of known begins and ends, over which the loss is a mean."""
        return int((batch["labels"] != UNKNOWN).sum())

    def decode(self, logits: paddle.Tensor, batch: dict[str, Any]) -> list[Spans]:
        """Return the best spans of each window."""
        return window_spans(logits.numpy(), batch, self._most, self._longest)

    def _placed(self, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the labels with the position of "no answer" in each window; int64 ``[batch, 2]``."""
        labels = batch["labels"]
        if not self._cls_is_last:
            return labels
        places = np.array([[length - 1] for length in batch["lengths"]], np.int64)
        return paddle.where(labels == NOWHERE, paddle.to_tensor(places), labels)
