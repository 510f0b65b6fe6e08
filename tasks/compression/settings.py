"""The settings of a compression: those of a training, and how small the model becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from onion.errors import DataError
from onion.tasks.finetune.declared import declared_in, setting
from onion.tasks.finetune.settings import Settings
from onion.tasks.validators import NATURAL, SHARE, TEXT, as_float

RECIPE: Mapping[str, Any] = {"passes": 3, "batch_size": 32, "learning_rate": 1e-4, "weight_decay": 0.01}
"""What the small model is trained with unless it is given."""

NOT_OF_COMPRESSIONS = (
    *("task", "options", "encoder", "init_from", "init_head", "freeze", "run_sha256"),
    *("lora_rank", "lora_alpha", "lora_dropout", "lora_targets", "gradient_checkpointing", "layerwise_decay"),
    *("stream", "shuffle_buffer", "class_balanced", "pieces", "shard_optimizer"),
)
"""Settings of a training that a compression does not have: the run decides, or they are of large encoders."""


@attrs.frozen(kw_only=True)
class CompressSettings(Settings):
    """What ``onion compress`` is asked to do; ``task`` and its options are those of the run.

    Attributes:
        run_sha256: of the weights of the run, so that a training is not resumed with another teacher.
    """

    task: str = setting("data", "the run's", TEXT, "classification")
    run: str = setting("model", "run of onion train to make smaller", TEXT, metavar="DIR|NAME")
    width: float = setting("model", "share of heads and neurons to keep", SHARE, 1.0, convert=as_float)
    layers: int | None = setting("model", "layers to keep", NATURAL, None, told="all")
    run_sha256: str | None = None

    @layers.validator
    def _smaller(self, _: Any, layers: int | None) -> None:
        if self.width == 1 and layers is None:
            raise DataError("nothing becomes smaller: give width, layers or both; onion export has --vocab and --int8")

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> CompressSettings:
        """Return the settings that are given, and those of the recipe.

        Raises:
            DataError: one is missing, unknown or invalid, or nothing would become smaller by training.
        """
        known = [name for name in declared_in(cls) if name not in NOT_OF_COMPRESSIONS]
        odd = [name for name in given if name not in known]
        if odd:
            raise DataError(f"unknown setting {odd[0]!r}; a compression has {', '.join(known)}")
        missing = [name for name in ("run", "train", "dev") if name not in given]
        if missing:
            raise DataError(f"{missing[0]} is missing; set it with --{missing[0]}")
        return cls(**{**RECIPE, **given})

    def as_file(self) -> dict[str, Any]:
        """Return what :meth:`of` takes."""
        return {name: value for name, value in self.as_json().items() if name not in NOT_OF_COMPRESSIONS}
