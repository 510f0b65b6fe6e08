"""What the pieces of the study have found so far, by arm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.pretraining.study.arms import LEVELS, MASKS, SEEDS, Arm, Data
from benchmarks.pretraining.study.intervals import Seeds
from benchmarks.pretraining.study.pieces import FineTuningPiece, MasksPiece, Piece, PretrainingPiece

Read = Callable[[Piece], Mapping[str, Any] | None]


@dataclass(frozen=True)
class Findings:
    """The arms, and the result of each of their pieces; None: it is not there."""

    arms: Sequence[Arm]
    read: Read

    def figures(self, arm: Arm, data: Data) -> Seeds:
        """Return seed -> the figure on a data set, times 100."""
        found = {seed: self.read(FineTuningPiece(arm, data, seed)) for seed in SEEDS}
        return {seed: 100 * result["figure"] for seed, result in found.items() if result is not None}

    def pretraining(self, arm: Arm) -> Mapping[str, Any] | None:
        return None if arm.corpus is None else self.read(PretrainingPiece(arm))

    def words(self, arm: Arm) -> Mapping[str, float] | None:
        """Return loss and accuracy on held-out text with 0.15 of the words masked, whatever it was trained with."""
        found = self.read(MasksPiece(arm, "words"))
        return None if found is None else found["report"]

    def results(self) -> Iterator[Mapping[str, Any]]:
        """Yield all that there is."""
        yield from (result for arm in self.arms for piece in pieces_of(arm) if (result := self.read(piece)) is not None)


def pieces_of(arm: Arm) -> Iterator[Piece]:
    """Yield the pieces of an arm, without those that they need."""
    if arm.corpus is not None:
        yield PretrainingPiece(arm)
    if "masking.share" in arm.options:
        yield from (MasksPiece(arm, mask) for mask in (MASKS if arm in LEVELS else ["words"]))
    yield from fine_tunings(arm)


def fine_tunings(arm: Arm) -> Iterator[FineTuningPiece]:
    for seed in SEEDS:
        yield from (FineTuningPiece(arm, data, seed) for data in arm.data)
