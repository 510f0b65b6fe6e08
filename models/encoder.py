"""The encoder: one post-LN Transformer that serves BERT, RoBERTa and ERNIE; they differ by config.

encoder = Encoder.from_pretrained("minilm")
sequence_output, pooled_output = encoder(input_ids, token_type_ids)
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import paddle
from paddle import nn

from onion.errors import DataError
from onion.models import hub
from onion.models.config import EncoderConfig
from onion.models.fused.eligibility import plain_parts
from onion.models.fused.inference import lean, transform
from onion.models.layers import Embeddings, EncoderLayers, Pooler
from onion.models.ops import as_tensor, on_cpu, rows
from onion.models.packing import Ids, Packing, check_array, check_integers, on_host
from onion.models.weights import Weights, read_weights, write_weights

log = logging.getLogger(__name__)


@attrs.frozen(slots=False, eq=False, repr=False)  # cached properties live in __dict__
class Encoded:
    """What the encoder makes of a batch. Take what you need: the padded and the pooled form are made when first read.

    ``sequence_output, pooled_output = encoded`` works too.

    Attributes:
        packing: where the tokens stand in the padded batch.
    """

    _vectors: paddle.Tensor
    packing: Packing
    _pooler: Pooler
    _firsts_only: bool = False

    @property
    def packed(self) -> paddle.Tensor:
        """[tokens, hidden], the tokens of all rows without padding, row by row.

        Raises:
            DataError: the encoder was asked for the first tokens only.
        """
        if self._firsts_only:
            raise DataError("the encoder was called with firsts_only, so there are no vectors of other tokens")
        return self._vectors

    @cached_property
    def firsts(self) -> paddle.Tensor:
        """[batch, hidden], the first token of each row."""
        return self._vectors if self._firsts_only else rows(self._vectors, self.packing.firsts)

    @cached_property
    def sequence_output(self) -> paddle.Tensor:
        """[batch, length, hidden], zero where there is padding."""
        return self.packing.unpack(self.packed)

    @cached_property
    def pooled_output(self) -> paddle.Tensor:
        """[batch, hidden], from the first token of each row."""
        return self._pooler(self.firsts)

    def __iter__(self) -> Iterator[paddle.Tensor]:
        yield self.sequence_output
        yield self.pooled_output


class Encoder(nn.Layer):
    """A Transformer encoder with PaddleNLP's parameter names that never computes padding.

    Padded positions are dropped before the embeddings; every embedding, linear layer, norm and dropout works on
    [tokens, hidden]. The padded shape appears inside attention only.

    Args:
        config: sizes and settings. Weights start as BERT's do (normal, ``initializer_range``).
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
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
        firsts_only: bool = False,
    ) -> Encoded:
        """Encode a padded batch.

        Every argument may be a tensor or a numpy array, integers of shape [batch, length]. Where the tokens
        stand is worked out on the host: on a GPU give ``attention_mask`` as a numpy array, and nothing waits for the
        device.

        Args:
            input_ids: token ids; what stands on padding does not matter.
            token_type_ids: segment ids; default 0. An encoder without segments takes 0 only.
            position_ids: default the column, as in BERT, whatever padding stands before it; with
                ``config.position_offset`` that offset plus the number of the row's tokens before it, as in RoBERTa.
            attention_mask: above 0 where a token stands, anywhere in the row, 0 elsewhere; default where ``input_ids``
                is not ``config.pad_token_id``.
            task_type_ids: ids of ERNIE's tasks, or one for all tokens; default ``config.task_id``. An encoder that does
                not use them takes 0 only.
            firsts_only: nothing but ``pooled_output`` and ``firsts`` will be read. On the CPU the last layer is then
                computed for the first token of each row alone, with the same result.

        Raises:
            DataError: the batch is longer than the position embeddings reach, a row has no token, shapes differ,
                something is no array of integers (masks may be of any numbers), or (checked on the host only) an id has
                no embedding.
        """
        config = self.config
        packing = Packing.of(_mask(input_ids, attention_mask, config), config.num_attention_heads)
        types = _chosen("token_type_ids", token_type_ids, 0, packing, config.type_vocab_size)
        tasks = _chosen("task_type_ids", task_type_ids, config.task_id, packing, config.tasks)
        embedded = self.embeddings(
            _packed("input_ids", input_ids, packing, config.vocab_size),
            types,
            _positions(position_ids, packing, config),
            tasks,
        )
        weights = lean(self.encoder, embedded)
        firsts_only = firsts_only and on_cpu(embedded) and plain_parts(self.encoder.layers[-1]) is not None
        if weights is None:
            vectors = self.encoder(embedded, packing, firsts_only)
        else:
            vectors = transform(weights, embedded, packing, firsts_only)
        return Encoded(vectors, packing, self.pooler, firsts_only)

    @classmethod
    def from_pretrained(cls, name_or_folder: str | Path, **settings: Any) -> Encoder:
        """Load an encoder from a folder of any of the layouts that config.py and weights.py read.

        Args:
            name_or_folder: a folder, or a named model, which is fetched the first time (see hub.py). It holds the
                config and the weights; heads among these are left out.
            **settings: config values to use instead of the file's, such as ``hidden_dropout_prob=0``.

        Raises:
            WeightsError: neither a folder nor a known name; or something is missing, damaged, or does not fit.
        """
        folder = hub.resolve(name_or_folder)
        return cls.of(EncoderConfig.read(folder), read_weights(folder), **settings)

    @classmethod
    def of(cls, config: EncoderConfig, weights: Weights, **settings: Any) -> Encoder:
        """Make an encoder of a folder's config and weights; before its parameters are made, the weights are checked.

        Raises:
            WeightsError: they do not fit, or there is no such setting.
        """
        weights.check_settings(config)
        config = config.changed(**settings)
        fresh = weights.check(config)  # sizes that are wrong may also be larger than the memory
        encoder = cls(config)
        encoder._take(weights, fresh)
        return encoder

    def fill(self, weights: Weights) -> None:
        """Take over the encoder's part of weights that were read; all of it or, when something is wrong, nothing.

        Raises:
            WeightsError: they do not fit.
        """
        self._take(weights, weights.check(self.config))

    def _take(self, weights: Weights, fresh: tuple[str, ...]) -> None:
        parameters = dict(self.named_parameters())
        for name, array in weights.arrays.items():
            parameters[name].set_value(np.ascontiguousarray(array))
        if fresh:
            log.warning("%s holds no pooler; it starts with random weights", weights.path)
        if weights.ignored:
            log.debug("%s: not the encoder's, ignored: %s", weights.path, ", ".join(weights.ignored))

    def save_pretrained(self, folder: str | Path, layout: str = "onion") -> None:
        """Write ``config.json`` and ``model.safetensors``, each replaced as a whole or not at all; the folder is made.

        The weights, which come first, also name what the config says of their meaning: a folder that a killed process
        leaves with one new file and one old is refused when it is loaded, unless both mean the same.

        Args:
            folder: where to.
            layout: of the weights; :func:`onion.models.weights.write_weights` lists them.

        Raises:
            WeightsError: they cannot be written, or there is no such layout.
        """
        write_weights(folder, arrays_of(self), layout, config=self.config)
        self.config.write(folder)


def arrays_of(layer: nn.Layer) -> dict[str, np.ndarray]:
    """The parameters of a layer as they are saved: name -> array."""
    return {name: _array(parameter) for name, parameter in layer.named_parameters()}


def _array(parameter: paddle.Tensor) -> np.ndarray:
    """Paddle hands out bfloat16, which numpy lacks, as its bits in integers; we save it as float32."""
    return (parameter.astype("float32") if parameter.dtype == paddle.bfloat16 else parameter).numpy()


def _mask(input_ids: Ids, attention_mask: Ids | None, config: EncoderConfig) -> np.ndarray:
    if attention_mask is None:
        return on_host("input_ids", input_ids) != config.pad_token_id
    mask = on_host("attention_mask", attention_mask)
    check_array("input_ids", input_ids)
    _check_shape("attention_mask", mask, input_ids)
    return mask


def _check_shape(name: str, values: Ids, input_ids: Ids) -> None:
    if list(values.shape) != list(input_ids.shape):
        raise DataError(f"{name} has the shape {list(values.shape)}, input_ids {list(input_ids.shape)}")


def _positions(values: Ids | None, packing: Packing, config: EncoderConfig) -> paddle.Tensor:
    """The positions of the tokens: int64 [tokens]; by default nothing but the length of the batch can be wrong."""
    if values is not None:
        return _packed("position_ids", values, packing, config.max_position_embeddings)
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


def _chosen(name: str, values: Ids | int | None, default: int, packing: Packing, size: int) -> paddle.Tensor | None:
    """The ids for embeddings that not every encoder has (``size`` 0); given none or one, it is every token's."""
    if values is None and not size:
        return None
    if values is None or isinstance(values, (int, np.integer)):
        value = default if values is None else int(values)
        _check_ids(name, value, value, size)
        return as_tensor(np.full(packing.tokens, value, np.int64)) if size else None
    ids = _packed(name, values, packing, size)
    return ids if size else None


def _packed(name: str, values: Ids, packing: Packing, size: int) -> paddle.Tensor:
    """The ids of the tokens: int64 [tokens]. On the host, that each lies in [0, size) is checked; size 0 admits 0."""
    check_integers(name, values)
    _check_shape(name, values, packing.mask)
    if isinstance(values, paddle.Tensor) and not on_cpu(values):
        return packing.pack(values).astype("int64")
    # A few hundred integers: numpy picks and checks them faster than kernels would.
    ids = packing.pack(on_host(name, values)).astype(np.int64, copy=False)
    _check_ids(name, int(ids.min()), int(ids.max()), size)
    return as_tensor(ids)


def _check_ids(name: str, low: int, high: int, size: int) -> None:
    if low < 0 or high >= max(size, 1):
        known = f"embeddings for 0 to {size - 1}" if size else "no embeddings for them"
        raise DataError(f"{name} holds {low if low < 0 else high}; the encoder has {known}")
