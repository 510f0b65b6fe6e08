"""The encoder of BERT, RoBERTa and ERNIE: one post-LN Transformer, whose config makes the difference.

encoder = Encoder.from_pretrained("minilm")
sequence_output, pooled_output = encoder(input_ids, token_type_ids)
"""

from __future__ import annotations

from typing import ClassVar

import paddle

from onion.errors import DataError
from onion.models.config import EncoderConfig
from onion.models.fused import dispatch
from onion.models.inputs import chosen_ids, mask_of, packed_ids
from onion.models.layers import Embeddings, EncoderLayers, Pooler
from onion.models.ops import as_tensor
from onion.models.packing import Ids, Packing
from onion.models.pretrained_config import PretrainedConfig
from onion.models.pretrained_encoder import Encoded, PretrainedEncoder


class Encoder(PretrainedEncoder):
    """A Transformer encoder with PaddleNLP's parameter names that computes no padding.

    Padding is dropped before the embeddings; embeddings, linear layers, norms and dropout compute on [tokens, hidden].
    Only attention uses the padded shape.

    Args:
        config: sizes and settings. New weights are initialized as BERT's (normal, ``initializer_range``).
    """

    config: EncoderConfig
    config_class: ClassVar[type[PretrainedConfig]] = EncoderConfig
    layers_path: ClassVar[str] = "encoder.layers"
    masked_lm: ClassVar[bool] = True

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        self.embeddings = Embeddings(config)
        self.encoder = EncoderLayers(config)
        self.pooler = Pooler(config, None if config.pool_act == "linear" else paddle.tanh)

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

        Without segments or tasks only 0 is accepted for them; ``task_type_ids`` may be one id for all tokens, by
        default ``config.task_id``. Positions are by default the columns, as in BERT, or with ``config.position_offset``
        the offset plus the number of tokens before it in the row, as in RoBERTa. With ``cls_only``, on the CPU, the
        last layer is computed for the first token of each row only, with the same result.
        """
        config = self.config
        packing = Packing.of(mask_of(input_ids, attention_mask, config.pad_token_id), config.num_attention_heads)
        types = chosen_ids("token_type_ids", token_type_ids, 0, packing, config.type_vocab_size)
        tasks = chosen_ids("task_type_ids", task_type_ids, config.task_id, packing, config.tasks)
        words = packed_ids("input_ids", input_ids, packing, config.vocab_size)
        embedded = self._embedded(words, types, _positions(position_ids, packing, config), tasks)
        vectors, cls_only = dispatch.run(self.encoder, embedded, packing, cls_only, self.gradient_checkpointing)
        return Encoded(vectors, packing, self.pooler, cls_only)

    def _embedded(self, *ids: paddle.Tensor | None) -> paddle.Tensor:
        """Return the input of the first layer, [tokens, hidden], for the arguments of :class:`Embeddings`."""
        return self.embeddings(*ids)


def _positions(values: Ids | None, packing: Packing, config: EncoderConfig) -> paddle.Tensor:
    """Return the positions of the tokens, int64 [tokens]."""
    if values is not None:
        return packed_ids("position_ids", values, packing, config.max_position_embeddings)
    if config.position_offset:
        _check_length(packing.longest, config)
        return as_tensor(packing.pack(packing.counts) + config.position_offset)
    _check_length(packing.length, config)
    return as_tensor(packing.columns)


def _check_length(length: int, config: EncoderConfig) -> None:
    if length > config.max_length:
        taken = f", of which {config.position_offset} are not for texts" if config.position_offset else ""
        raise DataError(
            f"a batch of length {length} does not fit max_position_embeddings {config.max_position_embeddings}{taken}; "
            f"cut the texts (max_length of the tokenizer)"
        )
