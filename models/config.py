"""The numbers of an encoder, under the names of Hugging Face's and PaddleNLP's ``config.json``."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from onion.errors import WeightsError
from onion.models import config_validators
from onion.models.formats.config_readers import CONFIG_FILE, PASSED_OVER, find, translate
from onion.models.formats.safetensors_file import put_file

log = logging.getLogger(__name__)

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
class EncoderConfig:
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

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str | Path = CONFIG_FILE) -> EncoderConfig:
        """Make a config from what a config file holds, in any of the forms that config_readers.py lists.

        Keys that do not concern the encoder are passed over. Those among them that nobody knows are named once, in a
        warning: they may ask for something that this encoder does not do.

        Args:
            values: the JSON object.
            where: the file, for the warning; its name tells static ERNIE's configs.

        Raises:
            WeightsError: a required key is missing (all are named, and unknown ones, of which one may be it), or a
                value is not supported.
        """
        values = translate(values, Path(where).name)
        names = [field.name for field in attrs.fields(cls)]
        unknown = ", ".join(key for key in values if key not in names and key not in PASSED_OVER)
        missing = [f.name for f in attrs.fields(cls) if f.default is attrs.NOTHING and f.name not in values]
        if missing:
            hint = f"; not known: {unknown}" if unknown else ""
            raise WeightsError(f"keys are missing: {', '.join(missing)}{hint}")
        config = cls(**{name: values[name] for name in names if name in values})
        if unknown:
            log.warning("%s: not known and passed over: %s", where, unknown)
        return config

    @classmethod
    def read(cls, path: str | Path) -> EncoderConfig:
        """Read the config of a model: Hugging Face's, PaddleNLP's (flat or nested), static ERNIE's or our own.

        Args:
            path: the file, or the folder it lies in.

        Raises:
            WeightsError: no such file, not JSON, or what :meth:`from_dict` raises; the message names the file.
        """
        path = find(Path(path))
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise WeightsError(f"{path}: cannot read the model's config: {error.strerror}") from error
        except ValueError as error:
            raise WeightsError(f"{path}: not a JSON file: {error}") from error
        except RecursionError as error:
            raise WeightsError(f"{path}: not a model's config: nested too deep") from error
        if not isinstance(values, dict):
            raise WeightsError(f"{path}: holds a JSON {type(values).__name__}, not an object")
        try:
            return cls.from_dict(values, path)
        except WeightsError as error:
            raise WeightsError(f"{path}: {error}") from error

    def changed(self, **settings: Any) -> EncoderConfig:
        """The same config with other values.

        Raises:
            WeightsError: there is no such setting, or a value is not supported.
        """
        names = [field.name for field in attrs.fields(type(self))]
        unknown = [name for name in settings if name not in names]
        if unknown:
            raise WeightsError(f"an encoder has no setting {', '.join(unknown)}; it has {', '.join(names)}")
        return attrs.evolve(self, **settings)

    def meaning(self) -> dict[str, Any]:
        """The values that make another encoder of the same arrays."""
        return {name: getattr(self, name) for name in MEANING}

    def to_dict(self) -> dict[str, Any]:
        """The config as JSON values, under the names it is read by."""
        return attrs.asdict(self)

    def write(self, path: str | Path) -> None:
        """Write a ``config.json`` that :meth:`read` and Hugging Face understand, and PaddleNLP too.

        Args:
            path: the file, or an existing folder to put it in. Replaced as a whole or not at all.
        """
        path = Path(path)
        path = path / CONFIG_FILE if path.is_dir() else path
        put_file(path, (json.dumps(self.to_dict(), indent=2) + "\n").encode())
