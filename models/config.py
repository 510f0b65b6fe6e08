"""The config of BERT, ERNIE and RoBERTa, with the names of Hugging Face's and PaddleNLP's ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from onion.errors import WeightsError
from onion.models.formats.config_readers import translate
from onion.models.pretrained_config import (
    PretrainedConfig,
    Shape,
    above,
    linear_shapes,
    norm_shapes,
    number,
    one_of,
    truth,
    whole,
)

MODEL_TYPES = ("bert", "ernie", "roberta")
ACTIVATIONS = ("gelu", "relu")
POOLER_ACTIVATIONS = ("tanh", "linear")

# Settings that change the outputs but no array's shape.
MEANING = (
    "num_attention_heads", "hidden_act", "layer_norm_eps", "pool_act", "position_offset", "pad_token_id", "use_task_id",
    "task_id",
)  # fmt: skip

_positive = whole(1)
_not_negative = whole(0)
_probability = number(0, 1)


@attrs.frozen(kw_only=True)
class EncoderConfig(PretrainedConfig):
    """Sizes and settings of an :class:`onion.models.encoder.Encoder`.

    The defaults are BERT's (transformers ``BertConfig``). Sizes have no defaults, because a wrong guess would only show
    later, as shapes that do not match.

    Attributes:
        type_vocab_size: number of token types (segments); 0: no such embeddings.
        task_type_vocab_size: number of tasks that ERNIE was trained with; 0: none.
        use_task_id: whether task embeddings are added. Without them there is no such parameter.
        task_id: the default task of a batch; ERNIE is fine-tuned with 0.
        position_offset: 0: a token's position is its column, as in BERT and ERNIE. Otherwise the position of a row's
            first token; only tokens are counted, not padding. In RoBERTa it is the padding id + 1. :attr:`max_length`
            is shorter by it. Change it together with ``model_type`` or ``pad_token_id``; other values are refused.
        layer_norm_eps: 1e-12 in Hugging Face's and PaddleNLP's BERT and ERNIE; 1e-5 in static ERNIE's weights and in
            RoBERTa's. (PaddleNLP 2.8.1 uses 1e-12 for ERNIE whatever its config says, so its outputs differ by about
            1e-4 for weights that were trained with 1e-5.)
        pool_act: activation of the pooler; ``"linear"`` is none.
        head_dim: width of one attention head where that is not ``hidden_size / num_attention_heads``, because heads
            were removed (``narrowing.py``). Other libraries cannot read such an encoder.

    Raises:
        WeightsError: a value is out of range, or two values contradict each other.
    """

    meaning_fields: ClassVar[tuple[str, ...]] = MEANING

    vocab_size: int = attrs.field(validator=_positive)
    hidden_size: int = attrs.field(validator=_positive)
    num_hidden_layers: int = attrs.field(validator=_positive)
    num_attention_heads: int = attrs.field(validator=_positive)
    intermediate_size: int = attrs.field(validator=_positive)
    max_position_embeddings: int = attrs.field(validator=_positive)
    type_vocab_size: int = attrs.field(default=2, validator=_not_negative)
    task_type_vocab_size: int = attrs.field(default=0, validator=_not_negative)
    use_task_id: bool = attrs.field(default=False, validator=truth)
    task_id: int = attrs.field(default=0, validator=_not_negative)
    hidden_act: str = attrs.field(default="gelu", validator=one_of(*ACTIVATIONS))
    hidden_dropout_prob: float = attrs.field(default=0.1, validator=_probability)
    attention_probs_dropout_prob: float = attrs.field(default=0.1, validator=_probability)
    initializer_range: float = attrs.field(default=0.02, validator=number(0, 1000))
    layer_norm_eps: float = attrs.field(default=1e-12, validator=above(0, 1))
    pad_token_id: int = attrs.field(default=0, validator=_not_negative)
    model_type: str = attrs.field(default="bert", validator=one_of(*MODEL_TYPES))
    pool_act: str = attrs.field(default="tanh", validator=one_of(*POOLER_ACTIVATIONS))
    head_dim: int | None = attrs.field(default=None, validator=attrs.validators.optional(_positive))
    position_offset: int = attrs.field(validator=_not_negative)

    @position_offset.default
    def _position_offset(self) -> int:
        # The validators, which run after the defaults, reject an id of the wrong type.
        return self.pad_token_id + 1 if self.model_type == "roberta" and isinstance(self.pad_token_id, int) else 0

    def __attrs_post_init__(self) -> None:
        if self.head_dim is None and self.hidden_size % self.num_attention_heads:
            raise WeightsError(
                f"hidden_size {self.hidden_size} is not divisible by num_attention_heads {self.num_attention_heads}"
            )
        if self.pad_token_id >= self.vocab_size:
            raise WeightsError(f"pad_token_id {self.pad_token_id} is outside the vocabulary of {self.vocab_size}")
        if self.use_task_id and self.task_id >= self.task_type_vocab_size:
            raise WeightsError(
                f"use_task_id is set, but task_id {self.task_id} is outside task_type_vocab_size "
                f"{self.task_type_vocab_size}"
            )
        if self.max_length < 1:
            raise WeightsError(
                f"position_offset {self.position_offset} leaves none of {self.max_position_embeddings} positions"
            )
        if self.position_offset != self._position_offset():
            raise WeightsError(
                f"position_offset {self.position_offset} does not match model_type {self.model_type} and "
                f"pad_token_id {self.pad_token_id}; set position_offset to {self._position_offset()}"
            )

    @property
    def embedding_size(self) -> int:
        """Width of the embeddings; other families may project them to the hidden size."""
        return self.hidden_size

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.num_attention_heads if self.head_dim is None else self.head_dim

    @property
    def has_all_heads(self) -> bool:
        """Whether the heads are together as wide as the encoder."""
        return self.attention_size == self.hidden_size

    @property
    def attention_size(self) -> int:
        """Width of all attention heads together; the hidden size, unless heads were removed."""
        return self.num_attention_heads * self.head_size

    @property
    def max_length(self) -> int:
        """Maximum number of tokens of a text."""
        return self.max_position_embeddings - self.position_offset

    @property
    def tasks(self) -> int:
        """Number of task embeddings; 0 if the encoder does not use them."""
        return self.task_type_vocab_size if self.use_task_id else 0

    def shapes(self) -> dict[str, Shape]:
        """Return name -> shape of every parameter of the encoder."""
        width, embedded, inner = self.hidden_size, self.embedding_size, self.intermediate_size
        heads = self.attention_size
        tables = {
            "word": self.vocab_size,
            "position": self.max_position_embeddings,
            "token_type": self.type_vocab_size,
            "task_type": self.tasks,
        }
        shapes: dict[str, Shape] = {
            f"embeddings.{table}_embeddings.weight": (size, embedded) for table, size in tables.items() if size
        }
        shapes |= norm_shapes("embeddings.layer_norm", embedded)
        if embedded != width:
            shapes |= linear_shapes("embeddings_project", embedded, width)
        for layer in (f"encoder.layers.{index}" for index in range(self.num_hidden_layers)):
            for part in ("q_proj", "k_proj", "v_proj"):
                shapes |= linear_shapes(f"{layer}.self_attn.{part}", width, heads)
            shapes |= linear_shapes(f"{layer}.self_attn.out_proj", heads, width)
            shapes |= linear_shapes(f"{layer}.linear1", width, inner) | linear_shapes(f"{layer}.linear2", inner, width)
            shapes |= norm_shapes(f"{layer}.norm1", width) | norm_shapes(f"{layer}.norm2", width)
        return shapes | linear_shapes("pooler.dense", width, width)

    def to_dict(self) -> dict[str, Any]:
        """Return the config as JSON values, with the names by which it is read; without ``head_dim`` if it is None."""
        return {name: value for name, value in super().to_dict().items() if name != "head_dim" or value is not None}

    @classmethod
    def translate(cls, values: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Convert any of the formats listed in config_readers.py to the names of the fields."""
        found = translate(values, name)
        if found["model_type"] not in MODEL_TYPES:  # before missing keys are reported
            raise WeightsError(f"model_type must be one of {', '.join(MODEL_TYPES)}, got {found['model_type']!r}")
        return found
