"""The settings of a training whose model is taught by a run: which there are, and what is given without being asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import attrs

from onion.errors import DataError
from onion.tasks.finetune.declared import Declared, declared_in
from onion.tasks.finetune.settings import Settings

Own = TypeVar("Own", bound="TaughtSettings")

NOT_OFFERED = (
    *("task", "options", "encoder", "init_from", "init_head", "freeze"),
    *("lora_rank", "lora_alpha", "lora_dropout", "lora_targets", "gradient_checkpointing", "layerwise_decay"),
    *("stream", "shuffle_buffer", "class_balanced", "pieces", "shard_optimizer"),
)
"""Settings of a training that such a one does not have: the teacher decides, or they are of large encoders."""


@attrs.frozen(kw_only=True)
class TaughtSettings(Settings):
    """What a training by a teacher is asked to do; ``task`` and its options are the teacher's.

    Attributes:
        called: what the training is called in messages.
        required: the settings that have to be given.
        not_offered: the settings that cannot be given.
    """

    called: ClassVar[str]
    required: ClassVar[tuple[str, ...]]
    not_offered: ClassVar[tuple[str, ...]] = NOT_OFFERED

    @classmethod
    def declared(cls) -> dict[str, tuple[Declared, Any]]:
        """Return the settings that can be given, as ``declared_in`` does."""
        return {name: each for name, each in declared_in(cls).items() if name not in cls.not_offered}

    @classmethod
    def recipe(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the settings that hold unless they are given. Default: none but those of every training."""
        return {}

    @classmethod
    def of(cls: type[Own], given: Mapping[str, Any]) -> Own:
        """Return the settings that are given, and those of the recipe.

        Raises:
            DataError: one is missing, unknown or invalid.
        """
        known = cls.declared()
        odd = [name for name in given if name not in known]
        if odd:
            raise DataError(f"unknown setting {odd[0]!r}; {cls.called} has {', '.join(known)}")
        missing = [name for name in cls.required if name not in given]
        if missing:
            raise DataError(f"{missing[0]} is missing; set it with --{missing[0]}")
        return cls(**{**cls.recipe(given), **given})

    def as_file(self) -> dict[str, Any]:
        """Return what :meth:`of` takes."""
        return {name: value for name, value in self.as_json().items() if name not in self.not_offered}
