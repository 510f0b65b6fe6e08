"""The config of BERT, ERNIE and RoBERTa, under the names of Hugging Face's and PaddleNLP's ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from onion.errors import WeightsError
from onion.models import config_validators
from onion.models.formats.config_readers import translate
from onion.models.parameter_shapes import shapes_of
from onion.models.pretrained_config import PretrainedConfig, Shape

MODEL_TYPES = ("bert", "ernie", "roberta")
ACTIVATIONS = ("gelu", "relu")
POOLER_ACTIVATIONS = ("tanh", "linear")

# What makes another encoder of the same arrays: no array's shape tells a wrong one.
MEANING = (
    "num_attention_heads", "hidden_act", "layer_norm_eps", "pool_act", "position_offset", "pad_token_id", "use_task_id",
    "task_id",
)  # fmt: skip

_positive = config_validators.whole(1)
_not_negative = config_validators.whole(0)
_probability = config_validators.number(0, 1)


@attrs.frozen(kw_only=True)
class EncoderConfig(PretrainedConfig):
    """The shape and the settings of an :class:`onion.models.encoder.Encoder`.

    Encoders differ by these values only. The defaults are BERT's (transformers ``BertConfig``); the sizes have none,
    because a wrong guess would only show later, as misshapen weights.

    Attributes:
        type_vocab_size: token types (segments) there are embeddings for; 0: the encoder has none.
        task_type_vocab_size: tasks that ERNIE was trained with; 0: it knows no tasks.
        use_task_id: whether a task's embedding is part of the sum. Without it there is no such parameter.
        task_id: the task of batches that name none; ERNIE is fine-tuned with 0.
        position_offset: 0: a token's position is its column, as in BERT and ERNIE. Otherwise positions count from here
            and over the tokens only, whatever padding stands before them: RoBERTa, where it is the padding id + 1. So
            many positions fewer are left for texts, see :attr:`max_length`. Whoever changes
            ``model_type`` or ``pad_token_id`` changes it too; any other value is refused.
        layer_norm_eps: 1e-12 in Hugging Face's and PaddleNLP's BERT and ERNIE; 1e-5 in static ERNIE's weights, and in
            RoBERTa's. (PaddleNLP 2.8.1 computes ERNIE with 1e-12 whatever its config says: outputs of weights that
            were trained with 1e-5 differ there by about 1e-4.)
        pool_act: what follows the pooler's linear layer; ``"linear"`` is nothing.

    Raises:
        WeightsError: a value is out of its range, or two do not go together.
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
    use_task_id: bool = attrs.field(default=False, validator=config_validators.truth)
    task_id: int = attrs.field(default=0, validator=_not_negative)
    hidden_act: str = attrs.field(default="gelu", validator=config_validators.one_of(*ACTIVATIONS))
    hidden_dropout_prob: float = attrs.field(default=0.1, validator=_probability)
    attention_probs_dropout_prob: float = attrs.field(default=0.1, validator=_probability)
    initializer_range: float = attrs.field(default=0.02, validator=config_validators.number(0, 1000))
    layer_norm_eps: float = attrs.field(default=1e-12, validator=config_validators.above(0, 1))
    pad_token_id: int = attrs.field(default=0, validator=_not_negative)
    model_type: str = attrs.field(default="bert", validator=config_validators.one_of(*MODEL_TYPES))
    pool_act: str = attrs.field(default="tanh", validator=config_validators.one_of(*POOLER_ACTIVATIONS))
    position_offset: int = attrs.field(validator=_not_negative)

    @position_offset.default
    def _position_offset(self) -> int:
        # An id of the wrong type is the validators' to refuse; they come after the defaults.
        return self.pad_token_id + 1 if self.model_type == "roberta" and isinstance(self.pad_token_id, int) else 0

    def __attrs_post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
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
                f"position_offset {self.position_offset} leaves none of the {self.max_position_embeddings} positions"
            )
        if self.position_offset != self._position_offset():
            raise WeightsError(
                f"position_offset {self.position_offset} does not go with model_type {self.model_type} and "
                f"pad_token_id {self.pad_token_id}; give position_offset {self._position_offset()} too"
            )

    @property
    def embedding_size(self) -> int:
        """Width of the embeddings; families that project them to the hidden size have another one."""
        return self.hidden_size

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def max_length(self) -> int:
        """Tokens of the longest text that the positions reach."""
        return self.max_position_embeddings - self.position_offset

    @property
    def tasks(self) -> int:
        """Tasks there are embeddings for; 0 where the encoder does not use them."""
        return self.task_type_vocab_size if self.use_task_id else 0

    def shapes(self) -> dict[str, Shape]:
        """Name -> shape of every parameter of the encoder."""
        return shapes_of(self)

    @classmethod
    def translate(cls, values: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Bring any of the forms that config_readers.py lists under the names of the fields."""
        found = translate(values, name)
        if found["model_type"] not in MODEL_TYPES:  # said before its keys are missed
            raise WeightsError(
                f"model_type is {found['model_type']!r}; only one of {', '.join(MODEL_TYPES)} is supported"
            )
        return found
