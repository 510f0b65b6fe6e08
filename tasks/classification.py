"""Classification of a text or a pair of texts: the head over an encoder, and its cost."""

from __future__ import annotations

from typing import Any

import paddle
from paddle import nn
from paddle.nn import functional

from onion.tasks.texts import arguments


class Classifier(nn.Layer):
    """An encoder, dropout and a linear layer over its pooled output (BERT, Devlin et al. 2018, section 4.1).

    Args:
        encoder: gives ``pooled_output`` ``[batch, hidden]``; its config tells the width, and the dropout if none is
            given.
        classes: how many labels there are, at least 2.
        dropout: of the pooled output. Default: the encoder's ``hidden_dropout_prob``.
    """

    def __init__(self, encoder: nn.Layer, classes: int, dropout: float | None = None) -> None:
        super().__init__()
        config = encoder.config
        self.encoder = encoder
        self.dropout = nn.Dropout(config.hidden_dropout_prob if dropout is None else dropout)
        normal = nn.initializer.Normal(std=config.initializer_range)
        self.classifier = nn.Linear(config.hidden_size, classes, weight_attr=paddle.ParamAttr(initializer=normal))

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the logits, float32 ``[batch, classes]``, of a batch as ``onion.tasks.texts.batch_of`` makes it."""
        return self.classifier(self.dropout(self.encoder(**arguments(batch)).pooled_output))

    def cost(self, logits: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the mean cross-entropy, a scalar."""
        return functional.cross_entropy(logits, batch["labels"])
