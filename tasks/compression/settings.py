"""The settings of a compression: those of a training, and how small the model becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from onion.errors import DataError
from onion.tasks.finetune.declared import setting
from onion.tasks.teaching.settings import NOT_OFFERED, TaughtSettings
from onion.tasks.validators import NATURAL, SHARE, TEXT, as_float

RECIPE: Mapping[str, Any] = {"passes": 3, "batch_size": 32, "learning_rate": 1e-4, "weight_decay": 0.01}
"""What the small model is trained with unless it is given."""


@attrs.frozen(kw_only=True)
class CompressSettings(TaughtSettings):
    """What ``onion compress`` is asked to do; ``task`` and its options are those of the run.

    Attributes:
        run_sha256: of the weights of the run, so that a training is not resumed with another teacher.
    """

    called: ClassVar[str] = "a compression"
    required: ClassVar[tuple[str, ...]] = ("run", "train", "dev")
    not_offered: ClassVar[tuple[str, ...]] = (*NOT_OFFERED, "run_sha256")

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
    def recipe(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the same for every compression."""
        return RECIPE
