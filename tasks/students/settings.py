"""The settings of a distillation: those of a training, and what the teacher has to do with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from onion.errors import DataError
from onion.models.words.names import KINDS, SPLITTINGS
from onion.tasks.finetune.declared import setting
from onion.tasks.teaching.settings import NOT_OFFERED, TaughtSettings
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


@attrs.frozen(kw_only=True)
class DistillSettings(TaughtSettings):
    """What ``onion distill`` is asked to do; ``task`` and its options are the teacher's.

    Attributes:
        teacher_sha256: of the teacher's weights, so that a training is not resumed with another teacher.
    """

    called: ClassVar[str] = "a distillation"
    required: ClassVar[tuple[str, ...]] = ("teacher", "student", "train", "dev")
    not_offered: ClassVar[tuple[str, ...]] = (*NOT_OFFERED, "teacher_sha256")

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

    teacher_sha256: str | None = None

    @teacher_weight.validator
    def _something_to_learn(self, _: Any, teacher_weight: float) -> None:
        if not teacher_weight and (self.unlabelled is not None or self.copies):
            raise DataError(
                "teacher_weight is 0, but rows without labels and altered copies are learned from the teacher only; "
                "leave out unlabelled and copies, or set teacher_weight above 0"
            )

    def __attrs_post_init__(self) -> None:
        """Refuse settings that would change nothing."""
        of_words = self.student != TINY
        self._refuse_idle(("layers",), of_words, f"{self.student} has no layers of its teacher")
        self._refuse_idle(("vocabulary", "logits"), not of_words, f"{TINY} has its teacher's words, and asks it anew")
        self._refuse_idle(
            ("words",), not of_words and not self.copies, f"{TINY} without copies has its teacher's words"
        )
        self._refuse_idle(("logits", "temperature"), not self.teacher_weight, "teacher_weight is 0")

    def _refuse_idle(self, names: Sequence[str], idle: bool, why: str) -> None:
        for name in names if idle else ():
            if getattr(self, name) != getattr(attrs.fields(type(self)), name).default:
                raise DataError(f"{name} has no effect: {why}; leave it out")

    @classmethod
    def recipe(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the settings of the student's recipe."""
        return RECIPES.get(given["student"], {})
