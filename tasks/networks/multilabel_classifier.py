"""The network of ``multilabel``."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
from paddle.nn import functional

from onion.tasks.decoding import label_probabilities
from onion.tasks.networks.heads import SentenceHead


class MultiLabelClassifier(SentenceHead):
    """A head with one logit per label, each an independent decision."""

    def loss(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the binary cross-entropy, a scalar: the mean over examples and labels."""
        # Paddle 3.3's binary_cross_entropy_with_logits has a wrong gradient for logits of 0; this is the same loss.
        return (functional.softplus(logits) - batch["labels"] * logits).mean()

    def decode(self, logits: paddle.Tensor, batch: dict[str, Any]) -> list[np.ndarray]:
        """Return the probabilities, float64 ``[labels]``, of each example."""
        return label_probabilities(logits.numpy(), batch)
