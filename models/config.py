"""The numbers of an encoder, under the names of Hugging Face's ``config.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs

from onion.errors import WeightsError
from onion.models.tensors import put_file

CONFIG_FILE = "config.json"
MODEL_TYPES = ("bert",)
ACTIVATIONS = ("gelu", "relu")

_positive = attrs.validators.and_(attrs.validators.instance_of(int), attrs.validators.gt(0))
_not_negative = attrs.validators.and_(attrs.validators.instance_of(int), attrs.validators.ge(0))
_number = attrs.validators.instance_of((float, int))
_probability = attrs.validators.and_(_number, attrs.validators.ge(0), attrs.validators.lt(1))


@attrs.frozen(kw_only=True)
class EncoderConfig:
    """The shape and the settings of an :class:`onion.models.encoder.Encoder`.

    Encoders of one family differ by these values only. The defaults are BERT's (transformers ``BertConfig``); the sizes
    have none, because a wrong guess would only show later, as misshapen weights.

    Raises:
        WeightsError: a value is out of its range, or two do not go together.
    """

    vocab_size: int = attrs.field(validator=_positive)
    hidden_size: int = attrs.field(validator=_positive)
    num_hidden_layers: int = attrs.field(validator=_positive)
    num_attention_heads: int = attrs.field(validator=_positive)
    intermediate_size: int = attrs.field(validator=_positive)
    max_position_embeddings: int = attrs.field(validator=_positive)
    type_vocab_size: int = attrs.field(default=2, validator=_positive)
    hidden_act: str = attrs.field(default="gelu", validator=attrs.validators.in_(ACTIVATIONS))
    hidden_dropout_prob: float = attrs.field(default=0.1, validator=_probability)
    attention_probs_dropout_prob: float = attrs.field(default=0.1, validator=_probability)
    initializer_range: float = attrs.field(default=0.02, validator=_number)
    layer_norm_eps: float = attrs.field(default=1e-12, validator=_number)
    pad_token_id: int = attrs.field(default=0, validator=_not_negative)
    model_type: str = attrs.field(default="bert", validator=attrs.validators.in_(MODEL_TYPES))

    def __attrs_post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise WeightsError(
                f"hidden_size {self.hidden_size} is not divisible by num_attention_heads {self.num_attention_heads}"
            )
        if self.pad_token_id >= self.vocab_size:
            raise WeightsError(f"pad_token_id {self.pad_token_id} is outside the vocabulary of {self.vocab_size}")

    @property
    def head_size(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> EncoderConfig:
        """Make a config from the keys of a ``config.json``; keys that do not concern the encoder are passed over.

        Raises:
            WeightsError: a required key is missing (all are named), or a value is not supported.
        """
        missing = [f.name for f in attrs.fields(cls) if f.default is attrs.NOTHING and f.name not in values]
        if missing:
            raise WeightsError(f"keys are missing: {', '.join(missing)}")
        positions = values.get("position_embedding_type", "absolute")
        if positions != "absolute":
            raise WeightsError(f"position_embedding_type {positions!r} is not supported, only 'absolute' is")
        try:
            return cls(**{f.name: values[f.name] for f in attrs.fields(cls) if f.name in values})
        except (TypeError, ValueError) as error:
            # attrs hands the validators' message, the field and more as arguments; the first one is the sentence.
            raise WeightsError(str(error.args[0])) from error

    @classmethod
    def read(cls, path: str | Path) -> EncoderConfig:
        """Read a Hugging Face ``config.json``.

        Args:
            path: the file, or the folder it lies in.

        Raises:
            WeightsError: no such file, not JSON, or what :meth:`from_dict` raises; the message names the file.
        """
        path = Path(path)
        path = path / CONFIG_FILE if path.is_dir() else path
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise WeightsError(f"{path}: cannot read the model's config: {error.strerror}") from error
        except ValueError as error:
            raise WeightsError(f"{path}: not a JSON file: {error}") from error
        if not isinstance(values, dict):
            raise WeightsError(f"{path}: holds a JSON {type(values).__name__}, not an object")
        try:
            return cls.from_dict(values)
        except WeightsError as error:
            raise WeightsError(f"{path}: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """The config as JSON values, under the names it is read by."""
        return attrs.asdict(self)

    def write(self, path: str | Path) -> None:
        """Write a ``config.json`` that :meth:`read` and Hugging Face understand.

        Args:
            path: the file, or an existing folder to put it in. Replaced as a whole or not at all.
        """
        path = Path(path)
        path = path / CONFIG_FILE if path.is_dir() else path
        put_file(path, (json.dumps(self.to_dict(), indent=2) + "\n").encode())
