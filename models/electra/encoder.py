"""The encoder of ELECTRA: BERT's but for two parts."""

from __future__ import annotations

from typing import ClassVar

import paddle
import paddle.nn.functional as F  # noqa: N812  the name everybody knows it by

from onion.models import ops
from onion.models.electra.config import ElectraConfig
from onion.models.encoder import Encoder
from onion.models.layers import Linear, Pooler
from onion.models.pretrained_config import PretrainedConfig


class ElectraPooler(Pooler):
    """gelu of a linear layer over the first token, after dropout: the first half of the reference's classifier."""

    def __init__(self, config: ElectraConfig) -> None:
        super().__init__(config)
        self.dropout = config.hidden_dropout_prob

    def forward(self, first: paddle.Tensor) -> paddle.Tensor:
        """[batch, hidden] -> [batch, hidden]."""
        return F.gelu(self.dense(ops.dropout(first, self.dropout, self.training)))


class ElectraEncoder(Encoder):
    """ELECTRA's discriminator with PaddleNLP's parameter names.

    Args:
        config: sizes and settings. New weights are initialized as BERT's (normal, ``initializer_range``).
    """

    config: ElectraConfig
    config_class: ClassVar[type[PretrainedConfig]] = ElectraConfig
    masked_lm: ClassVar[bool] = False
    pooler_is_pretrained: ClassVar[bool] = False

    def __init__(self, config: ElectraConfig) -> None:
        super().__init__(config)
        self.pooler = ElectraPooler(config)
        projected = config.embedding_size != config.hidden_size
        self.embeddings_project = Linear(config.embedding_size, config.hidden_size, config) if projected else None

    def _embedded(
        self,
        words: paddle.Tensor,
        types: paddle.Tensor | None,
        positions: paddle.Tensor,
        tasks: paddle.Tensor | None,
    ) -> paddle.Tensor:
        embedded = super()._embedded(words, types, positions, tasks)
        return embedded if self.embeddings_project is None else self.embeddings_project(embedded)
