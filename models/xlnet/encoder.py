"""The encoder of XLNet: its content stream, which is all that fine-tuning and prediction need.

The query stream, the permutations of pretraining and the memory of earlier segments are not implemented.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import paddle
from paddle import nn

from onion.errors import DataError
from onion.models import ops, recompute
from onion.models.inputs import check_integers, check_shape, chosen_ids, mask_of, on_host, packed_ids
from onion.models.layers import ACTIVATIONS, Linear, Pooler, normal
from onion.models.ops import LayerNorm
from onion.models.packing import Ids, Packing
from onion.models.pretrained_config import PretrainedConfig
from onion.models.pretrained_encoder import Encoded, PretrainedEncoder
from onion.models.xlnet.attention import Relations, RelativeAttention, distance_encodings
from onion.models.xlnet.config import XLNetConfig


class FeedForward(nn.Layer):
    """Two linear layers with an activation, the residual and LayerNorm."""

    def __init__(self, config: XLNetConfig) -> None:
        super().__init__()
        self.layer_norm = LayerNorm(config.hidden_size, epsilon=config.layer_norm_eps)
        self.layer_1 = Linear(config.hidden_size, config.intermediate_size, config)
        self.layer_2 = Linear(config.intermediate_size, config.hidden_size, config)
        self.activation = ACTIVATIONS[config.hidden_act]
        self.dropout = config.hidden_dropout_prob

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """[tokens, hidden] -> [tokens, hidden]."""
        inner = ops.dropout(self.activation(self.layer_1(x)), self.dropout, self.training)
        return self.layer_norm(ops.dropout(self.layer_2(inner), self.dropout, self.training) + x)


class XLNetLayer(nn.Layer):
    """Relative attention, then a feed-forward network."""

    def __init__(self, config: XLNetConfig) -> None:
        super().__init__()
        self.rel_attn = RelativeAttention(config)
        self.ff = FeedForward(config)

    def forward(self, x: paddle.Tensor, relations: Relations) -> paddle.Tensor:
        """[tokens, hidden] -> [tokens, hidden]."""
        return self.ff(self.rel_attn(x, relations))


class XLNetEncoder(PretrainedEncoder):
    """XLNet with PaddleNLP's parameter names; padding is computed in attention only.

    Distances count columns, as in the reference, so padding on the left or right does not matter. In training, one
    dropout mask applies to the distance encodings of the whole batch; the reference draws one for each row.

    Args:
        config: sizes and settings. New weights are initialized as BERT's (normal, ``initializer_range``).
    """

    config: XLNetConfig
    config_class: ClassVar[type[PretrainedConfig]] = XLNetConfig
    layers_path: ClassVar[str] = "layer"
    cls_is_last: ClassVar[bool] = True
    pooler_is_pretrained: ClassVar[bool] = False
    lora_targets: ClassVar[tuple[str, ...]] = ("q", "v")

    def __init__(self, config: XLNetConfig) -> None:
        super().__init__(config)
        self.mask_emb = self.create_parameter(
            [1, 1, config.hidden_size], attr=normal(config)
        )  # for pretraining; unused, but kept
        self.word_embedding = nn.Embedding(config.vocab_size, config.hidden_size, weight_attr=normal(config))
        self.layer = nn.LayerList([XLNetLayer(config) for _ in range(config.num_hidden_layers)])
        self.pooler = Pooler(config)

    def forward(
        self,
        input_ids: Ids,
        token_type_ids: Ids | None = None,
        position_ids: Ids | None = None,
        attention_mask: Ids | None = None,
        task_type_ids: Ids | int | None = None,
        cls_only: bool = False,
    ) -> Encoded:
        """Encode a padded batch; arguments and errors as in :meth:`PretrainedEncoder.forward`.

        ``token_type_ids`` may be any integers, of which only equality matters. There are neither positions nor tasks,
        so ``position_ids`` must be None, and ``task_type_ids`` None or 0. ``cls_only`` has no effect.
        """
        config, drop = self.config, (self.config.hidden_dropout_prob, self.training)
        packing = Packing.of(mask_of(input_ids, attention_mask, config.pad_token_id), config.num_attention_heads)
        if position_ids is not None:
            raise DataError("XLNet has distances instead of position_ids; omit them")
        chosen_ids("task_type_ids", task_type_ids, 0, packing, size=0)
        distances = distance_encodings(packing.length, config.hidden_size, config.clamp_len)
        relations = Relations(
            packing, ops.dropout(ops.as_tensor(distances), *drop), _other_segment(token_type_ids, packing)
        )
        x = self.word_embedding(packed_ids("input_ids", input_ids, packing, config.vocab_size))
        x = ops.dropout(x, *drop)
        for layer in self.layer:
            x = recompute.call(layer, x, relations) if self.gradient_checkpointing else layer(x, relations)
        return Encoded(ops.dropout(x, *drop), packing, self.pooler, cls_is_last=self.cls_is_last)


def _other_segment(types: Ids | None, packing: Packing) -> paddle.Tensor:
    """Return whether query and key are in different segments: float32 [batch, 1, length, length]."""
    if types is None:
        return ops.as_tensor(np.zeros([packing.batch, 1, packing.length, packing.length], np.float32))
    check_integers("token_type_ids", types)
    types = on_host("token_type_ids", types)
    check_shape("token_type_ids", types, packing.mask)
    return ops.as_tensor((types[:, None, :, None] != types[:, None, None, :]).astype(np.float32))
