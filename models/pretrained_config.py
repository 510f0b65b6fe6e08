"""What the config of every family of encoders has in common. Without Paddle."""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import attrs

from onion.errors import WeightsError
from onion.models.formats.config_readers import CONFIG_FILE, PASSED_OVER, find, read_values
from onion.models.formats.safetensors_file import put_file

log = logging.getLogger(__name__)

Shape = tuple[int, ...]
Own = TypeVar("Own", bound="PretrainedConfig")


class PretrainedConfig(ABC):
    """The sizes and settings of an encoder: a frozen attrs class for each family, with these fields at least.

    Attributes:
        model_type: what ``config.json`` calls the architecture; the key into the registry (``families.py``).
        vocab_size: rows of the table of words.
        hidden_size: width of the vectors that the encoder gives.
        num_hidden_layers: layers.
        num_attention_heads: attention heads of a layer.
        hidden_dropout_prob: dropout; heads take it too, unless they have their own.
        initializer_range: standard deviation of new weights.
        pad_token_id: id of the padding.
        meaning_fields: fields whose value no array's shape shows; saved with the weights, and compared on loading.
        passed_over: keys of foreign configs that do not change what this family computes, beside those that no
            family minds.
    """

    model_type: str
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    hidden_dropout_prob: float
    initializer_range: float
    pad_token_id: int

    meaning_fields: ClassVar[tuple[str, ...]]
    passed_over: ClassVar[frozenset[str]] = frozenset()

    @property
    @abstractmethod
    def max_length(self) -> int:
        """Tokens of the longest text that the encoder takes."""

    @abstractmethod
    def shapes(self) -> dict[str, Shape]:
        """Name -> shape of every parameter of the encoder, before anything is allocated."""

    @classmethod
    def translate(cls, values: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Bring what a config file holds under the names of the fields; keys that are no field stay.

        Args:
            values: the JSON object.
            name: of the file.

        Raises:
            WeightsError: the file asks for a variant that is not supported.
        """
        return dict(values)

    @classmethod
    def from_dict(cls: type[Own], values: Mapping[str, Any], where: str | Path = CONFIG_FILE) -> Own:
        """Make a config from what a config file of this family holds.

        Keys that do not concern the encoder are passed over. Those among them that nobody knows are named once, in a
        warning: they may ask for something that this encoder does not do.

        Args:
            values: the JSON object.
            where: the file, for the warning; its name tells static ERNIE's configs.

        Raises:
            WeightsError: a required key is missing (all are named, and unknown ones, of which one may be it), or a
                value is not supported.
        """
        values = cls.translate(values, Path(where).name)
        fields = attrs.fields(cls)  # type: ignore[arg-type]  # every family's config is an attrs class
        names = [field.name for field in fields]
        unknown = ", ".join(key for key in values if key not in names and key not in PASSED_OVER | cls.passed_over)
        missing = [field.name for field in fields if field.default is attrs.NOTHING and field.name not in values]
        if missing:
            hint = f"; not known: {unknown}" if unknown else ""
            raise WeightsError(f"keys are missing: {', '.join(missing)}{hint}")
        config = cls(**{name: values[name] for name in names if name in values})
        if unknown:
            log.warning("%s: not known and passed over: %s", where, unknown)
        return config

    @classmethod
    def read(cls: type[Own], path: str | Path) -> Own:
        """Read the config of a model of this family; ``families.read_config`` reads any family's.

        Args:
            path: the file, or the folder it lies in.

        Raises:
            WeightsError: no such file, not JSON, or what :meth:`from_dict` raises; the message names the file.
        """
        path = find(Path(path))
        values = read_values(path)
        try:
            return cls.from_dict(values, path)
        except WeightsError as error:
            raise WeightsError(f"{path}: {error}") from error

    def changed(self: Own, **settings: Any) -> Own:
        """The same config with other values.

        Raises:
            WeightsError: there is no such setting, or a value is not supported.
        """
        names = [field.name for field in attrs.fields(type(self))]  # type: ignore[arg-type]
        unknown = [name for name in settings if name not in names]
        if unknown:
            raise WeightsError(f"an encoder has no setting {', '.join(unknown)}; it has {', '.join(names)}")
        return attrs.evolve(self, **settings)  # type: ignore[misc]

    def meaning(self) -> dict[str, Any]:
        """The values that make another encoder of the same arrays."""
        return {name: getattr(self, name) for name in self.meaning_fields}

    def to_dict(self) -> dict[str, Any]:
        """The config as JSON values, under the names it is read by."""
        return attrs.asdict(self)  # type: ignore[arg-type]

    def write(self, path: str | Path) -> None:
        """Write a ``config.json`` that :meth:`read` and Hugging Face understand, and PaddleNLP too.

        Args:
            path: the file, or an existing folder to put it in. Replaced as a whole or not at all.
        """
        path = Path(path)
        path = path / CONFIG_FILE if path.is_dir() else path
        put_file(path, (json.dumps(self.to_dict(), indent=2) + "\n").encode())
