"""The two heads of most tasks: a linear layer over the pooled output, or over every token."""

from __future__ import annotations

from typing import Any

import paddle
from paddle import nn

from onion.tasks.batches import arguments


class Head(nn.Layer):
    """An encoder, dropout and a linear layer; subclasses choose the encoder's vectors.

    Args:
        encoder: its config has the width, and the default dropout.
        outputs: the number of outputs per vector.
        dropout: of the vectors. Default: the encoder's ``hidden_dropout_prob``.
    """

    def __init__(self, encoder: nn.Layer, outputs: int, dropout: float | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout = nn.Dropout(encoder.config.hidden_dropout_prob if dropout is None else dropout)
        self.classifier = fresh_linear(encoder, outputs)


class SentenceHead(Head):
    """A head over the pooled output, one vector per example (BERT, Devlin et al. 2018, section 4.1)."""

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the logits, float32 ``[batch, outputs]``, of a batch as made by ``onion.tasks.batches.batch_of``."""
        return self.classifier(self.dropout(self.encoder(**arguments(batch), cls_only=True).pooled_output))


class TokenHead(Head):
    """A head over the vector of every token (BERT, sections 4.2 and 5.3)."""

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the logits, float32 ``[batch, length, outputs]``; those of padding are meaningless."""
        return self.classifier(self.dropout(self.encoder(**arguments(batch)).sequence_output))


def fresh_linear(encoder: nn.Layer, outputs: int) -> nn.Linear:
    """Return a linear layer over an encoder's vectors, initialized like the encoder's weights."""
    normal = nn.initializer.Normal(std=encoder.config.initializer_range)
    return nn.Linear(encoder.config.hidden_size, outputs, weight_attr=paddle.ParamAttr(initializer=normal))
