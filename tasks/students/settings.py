"""The settings of a distillation: those of a training, and what the teacher has to do with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from onion.errors import DataError
from onion.models.words.names import KINDS, SPLITTINGS
from onion.tasks.finetune.declared import declared_in, setting
from onion.tasks.finetune.settings import Settings
from onion.tasks.validators import COUNT, NATURAL, PART, POSITIVE, TEXT, as_float, one_of

TINY = "tiny"
STUDENTS = (*KINDS, TINY)

AUTO = "auto"
"""The splitting into words that suits the training texts."""

MOST_WORDS = 35_000
"""Words of a student's vocabulary, at most (ERNIE's bag of words)."""

_WORDS = {"passes": 10, "batch_size": 100, "learning_rate": 1e-3, "weight_decay": 0.0}
RECIPES: Mapping[str, Mapping[str, Any]] = {
    **dict.fromkeys(KINDS, _WORDS),
    TINY: {"passes": 3, "batch_size": 32, "learning_rate": 1e-4, "weight_decay": 0.01},
}
"""The settings by which each student is trained unless they are given."""

NOT_OF_STUDENTS = (
    *("task", "options", "encoder", "init_from", "init_head", "freeze"),
    *("lora_rank", "lora_alpha", "lora_dropout", "lora_targets", "gradient_checkpointing", "layerwise_decay"),
    *("stream", "shuffle_buffer", "class_balanced", "pieces", "shard_optimizer"),
)
"""Settings of a training that a distillation does not have: the teacher decides, or they are of large encoders."""


@attrs.frozen(kw_only=True)
class DistillSettings(Settings):
    """What ``onion distill`` is asked to do; ``task`` and its options are the teacher's."""

    task: str = setting("data", "the teacher's", TEXT, "classification")
    teacher: str = setting("model", "run of onion train to learn from", TEXT, metavar="DIR|NAME")
    student: str = setting("model", f"one of {', '.join(STUDENTS)}", one_of(STUDENTS), metavar="|".join(STUDENTS))
    unlabelled: str | None = setting(
        "data", "more rows, without labels; also a pattern, .parquet or hf:NAME/SPLIT", TEXT, None, metavar="FILE"
    )
    copies: int = setting("data", "altered copies of each row, which the teacher labels", COUNT, 0)
    words: str = setting(
        "data",
        "how texts are split into words",
        one_of((AUTO, *SPLITTINGS)),
        AUTO,
        metavar="|".join((AUTO, *SPLITTINGS)),
    )
    vocabulary: int = setting("model", "words of the student's vocabulary, at most", NATURAL, MOST_WORDS)
    layers: int = setting("model", "layers of a tiny student", NATURAL, 3)
    teacher_weight: float = setting(
        "optimization", "share of the teacher in the loss; 0: labels only", PART, 0.5, convert=as_float
    )
    temperature: float = setting(
        "optimization", "what logits are divided by before they are compared", POSITIVE, 1.0, convert=as_float
    )
    logits: str | None = setting(
        "data",
        "folder of the teacher's logits, which several students may share",
        TEXT,
        None,
        told="teacher in --output",
        metavar="DIR",
    )

    @teacher_weight.validator
    def _something_to_learn(self, _: Any, teacher_weight: float) -> None:
        if not teacher_weight and (self.unlabelled is not None or self.copies):
            raise DataError(
                "teacher_weight is 0, but rows without labels and altered copies are learned from the teacher only; "
                "leave out unlabelled and copies, or set teacher_weight above 0"
            )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> DistillSettings:
        """Return the settings that are given, and those of the student's recipe.

        Raises:
            DataError: one is missing, unknown or invalid.
        """
        known = [name for name in declared_in(cls) if name not in NOT_OF_STUDENTS]
        odd = [name for name in given if name not in known]
        if odd:
            raise DataError(f"unknown setting {odd[0]!r}; a distillation has {', '.join(known)}")
        missing = [name for name in ("teacher", "student", "train", "dev") if name not in given]
        if missing:
            raise DataError(f"{missing[0]} is missing; set it with --{missing[0]}")
        return cls(**{**RECIPES.get(given["student"], {}), **given})

    def as_file(self) -> dict[str, Any]:
        """Return what :meth:`of` takes."""
        return {name: value for name, value in self.as_json().items() if name not in NOT_OF_STUDENTS}
