"""What the configs of all families of encoders have in common. Without Paddle."""

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
from onion.models.formats.paths import naming
from onion.models.formats.safetensors_file import put_file
from onion.validation import Check, is_number, is_whole

log = logging.getLogger(__name__)

Shape = tuple[int, ...]
Own = TypeVar("Own", bound="PretrainedConfig")


class PretrainedConfig(ABC):
    """Sizes and settings of an encoder: a frozen attrs class for each family, with at least these fields.

    Attributes:
        model_type: the architecture in ``config.json``; the key of the registry (``families.py``).
        vocab_size: number of word embeddings.
        hidden_size: width of the encoder's output.
        num_hidden_layers: number of layers.
        num_attention_heads: attention heads per layer.
        hidden_dropout_prob: dropout, also the default of heads.
        initializer_range: standard deviation of new weights.
        pad_token_id: id of the padding.
        meaning_fields: fields that no array's shape reveals; saved with the weights and compared when loading.
        passed_over: keys of foreign configs that do not affect this family's outputs, besides those that affect none.
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
        """Maximum number of tokens of a text."""

    @property
    def has_all_heads(self) -> bool:
        """Whether no attention heads were removed, as every other library takes for granted."""
        return True

    @abstractmethod
    def shapes(self) -> dict[str, Shape]:
        """Return name -> shape of every parameter of the encoder, without allocating any."""

    @classmethod
    def translate(cls, values: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Convert the content of a config file to the names of the fields; unknown keys stay.

        Args:
            values: the JSON object.
            name: of the file.

        Raises:
            WeightsError: the file describes a variant that is not supported.
        """
        return dict(values)

    @classmethod
    def from_dict(cls: type[Own], values: Mapping[str, Any], where: str | Path = CONFIG_FILE) -> Own:
        """Create a config from the content of a config file of this family.

        Keys that do not concern the encoder are ignored; a warning names the unknown ones, which may ask for something
        that the encoder does not do.

        Args:
            values: the JSON object.
            where: the file, for the warning; static ERNIE's configs are recognized by its name.

        Raises:
            WeightsError: required keys are missing (the message names them and the unknown ones), or a value is not
                supported.
        """
        values = cls.translate(values, Path(where).name)
        fields = attrs.fields(cls)  # type: ignore[arg-type]  # every family's config is an attrs class
        names = [field.name for field in fields]
        unknown = ", ".join(key for key in values if key not in names and key not in PASSED_OVER | cls.passed_over)
        missing = [field.name for field in fields if field.default is attrs.NOTHING and field.name not in values]
        if missing:
            hint = f"; unknown keys: {unknown}" if unknown else ""
            raise WeightsError(f"missing keys: {', '.join(missing)}{hint}")
        config = cls(**{name: values[name] for name in names if name in values})
        if unknown:
            log.warning("%s: unknown keys, ignored: %s", where, unknown)
        return config

    @classmethod
    def read(cls: type[Own], path: str | Path) -> Own:
        """Read the config of a model of this family; ``families.read_config`` reads those of any family.

        Args:
            path: the file, or its folder.

        Raises:
            WeightsError: the file is missing or not JSON, or as :meth:`from_dict`; the message names the file.
        """
        path = find(Path(path))
        values = read_values(path)
        with naming(path):
            return cls.from_dict(values, path)

    def changed(self: Own, **settings: Any) -> Own:
        """Return the config with other values; raise a WeightsError for an unknown setting or an unsupported value."""
        names = [field.name for field in attrs.fields(type(self))]  # type: ignore[arg-type]
        unknown = [name for name in settings if name not in names]
        if unknown:
            raise WeightsError(f"unknown settings of an encoder: {', '.join(unknown)}; known are {', '.join(names)}")
        return attrs.evolve(self, **settings)  # type: ignore[misc]

    def meaning(self) -> dict[str, Any]:
        """Return the settings that no array's shape reveals."""
        return {name: getattr(self, name) for name in self.meaning_fields}

    def to_dict(self) -> dict[str, Any]:
        """Return the config as JSON values, with the names by which it is read."""
        return attrs.asdict(self)  # type: ignore[arg-type]

    def write(self, path: str | Path) -> None:
        """Write a ``config.json`` that :meth:`read`, Hugging Face and PaddleNLP understand.

        Args:
            path: the file, or an existing folder for it. The file is replaced atomically.
        """
        path = Path(path)
        path = path / CONFIG_FILE if path.is_dir() else path
        put_file(path, (json.dumps(self.to_dict(), indent=2) + "\n").encode())


def linear_shapes(name: str, width_in: int, width_out: int) -> dict[str, Shape]:
    """Return the shapes of a linear layer's parameters."""
    return {f"{name}.weight": (width_in, width_out), f"{name}.bias": (width_out,)}


def norm_shapes(name: str, width: int) -> dict[str, Shape]:
    """Return the shapes of a LayerNorm's parameters."""
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


# -- validators, which raise WeightsError ------------------------------------------------------------------------------


def whole(least: int) -> Check:
    """Require a whole number >= ``least``."""
    return Check(
        f"a whole number of {least} or more", lambda value: is_whole(value) and value >= least, error=WeightsError
    )


def number(least: float, below: float) -> Check:
    """Require a number in [least, below)."""
    wanted = f"a number from {least} to below {below}"
    return Check(wanted, lambda value: is_number(value) and least <= value < below, error=WeightsError)


def above(least: float, below: float) -> Check:
    """Require a number in (least, below)."""
    wanted = f"a number between {least} and {below}"
    return Check(wanted, lambda value: is_number(value) and least < value < below, error=WeightsError)


def one_of(*options: str) -> Check:
    """Require one of several names."""
    wanted = f"one of {', '.join(options)}"
    return Check(wanted, lambda value: isinstance(value, str) and value in options, error=WeightsError)


truth = Check("true or false", lambda value: isinstance(value, bool), error=WeightsError)
