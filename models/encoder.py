"""The encoder: one post-LN Transformer that serves BERT, RoBERTa and ERNIE; they differ by config.

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
    """A Transformer encoder with PaddleNLP's parameter names that never computes padding.

    Padded positions are dropped before the embeddings; every embedding, linear layer, norm and dropout works on
    [tokens, hidden]. The padded shape appears inside attention only.

    Args:
        config: sizes and settings. Weights start as BERT's do (normal, ``initializer_range``).
    """

    config: EncoderConfig
    config_class: ClassVar[type[PretrainedConfig]] = EncoderConfig
    layers_path: ClassVar[str] = "encoder.layers"
    masked_lm: ClassVar[bool] = True

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(config)
        self.embeddings = Embeddings(config)
        self.encoder = EncoderLayers(config)
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
        """Encode a padded batch; see :meth:`PretrainedEncoder.forward`.

        Args:
            input_ids: token ids; what stands on padding does not matter.
            token_type_ids: segment ids; default 0. An encoder without segments takes 0 only.
            position_ids: default the column, as in BERT, whatever padding stands before it; with
                ``config.position_offset`` that offset plus the number of the row's tokens before it, as in RoBERTa.
            attention_mask: above 0 where a token stands, anywhere in the row, 0 elsewhere; default where ``input_ids``
                is not ``config.pad_token_id``.
            task_type_ids: ids of ERNIE's tasks, or one for all tokens; default ``config.task_id``. An encoder that does
                not use them takes 0 only.
            cls_only: nothing but ``pooled_output`` and ``cls`` will be read. On the CPU the last layer is then
                computed for the first token of each row alone, with the same result.

        Raises:
            DataError: the batch is longer than the position embeddings reach, a row has no token, shapes differ,
                something is no array of integers (masks may be of any numbers), or (checked on the host only) an id has
                no embedding.
        """
        config = self.config
        packing = Packing.of(mask_of(input_ids, attention_mask, config.pad_token_id), config.num_attention_heads)
        types = chosen_ids("token_type_ids", token_type_ids, 0, packing, config.type_vocab_size)
        tasks = chosen_ids("task_type_ids", task_type_ids, config.task_id, packing, config.tasks)
        words = packed_ids("input_ids", input_ids, packing, config.vocab_size)
        embedded = self._embedded(words, types, _positions(position_ids, packing, config), tasks)
        vectors, cls_only = dispatch.run(self.encoder, embedded, packing, cls_only)
        return Encoded(vectors, packing, self.pooler, cls_only)

    def _embedded(
        self,
        words: paddle.Tensor,
        types: paddle.Tensor | None,
        positions: paddle.Tensor,
        tasks: paddle.Tensor | None,
    ) -> paddle.Tensor:
        """Packed int64 [tokens] each -> [tokens, hidden], what the first layer gets."""
        return self.embeddings(words, types, positions, tasks)


def _positions(values: Ids | None, packing: Packing, config: EncoderConfig) -> paddle.Tensor:
    """The positions of the tokens: int64 [tokens]; by default nothing but the length of the batch can be wrong."""
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
