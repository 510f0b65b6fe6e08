"""The encoder of ELECTRA: BERT's but for two parts."""

from __future__ import annotations

from typing import ClassVar

import paddle
import paddle.nn.functional as F  # noqa: N812  the name everybody knows it by

from onion.models.electra.config import ElectraConfig
from onion.models.encoder import Encoder
from onion.models.layers import Linear, Pooler
from onion.models.pretrained_config import PretrainedConfig


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
        self.pooler = Pooler(config, F.gelu, config.hidden_dropout_prob)  # the first half of the reference's classifier
        projected = config.embedding_size != config.hidden_size
        self.embeddings_project = Linear(config.embedding_size, config.hidden_size, config) if projected else None

    def _embedded(self, *ids: paddle.Tensor | None) -> paddle.Tensor:
        embedded = super()._embedded(*ids)
        return embedded if self.embeddings_project is None else self.embeddings_project(embedded)
