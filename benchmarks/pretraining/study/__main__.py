"""``make pretraining``: run what is missing, piece by piece, and write the page after each.

    python -m benchmarks.pretraining.study [ARM ...] [--data FOLDER] [--kept FOLDER] [--out FOLDER] [--table FILE]
        [--threads N] [--scale X]

A piece that is finished is not run again. An interrupted pretraining, or build of a corpus, goes on where it stopped, a
fine-tuning begins again. ``--scale 0.001`` makes a trial of it all in a folder of its own: less text, fewer steps and
rows, and figures that say nothing.

``--threads 1`` gives each piece one thread instead of two: two studies of different arms side by side, with one each,
do 1.3 times as much on two cores as one with two. What both need, such as a corpus, has to be there before.

    KEPT/PIECE.DIGEST.json     a result; the digest is of all that decides about it
    OUT/runs/PIECE.DIGEST/     what it leaves for others: corpora, checkpoints, encoders
"""

from __future__ import annotations

import statistics
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.frame.processes import THREADS
from benchmarks.frame.study import Result, Study, is_whole
from benchmarks.pretraining.study.arms import ARMS, DATA_SETS, LEVELS, LONGER, Arm, Data, longer
from benchmarks.pretraining.study.card import card
from benchmarks.pretraining.study.findings import Findings, fine_tunings, pieces_of
from benchmarks.pretraining.study.page import page
from benchmarks.pretraining.study.pieces import Piece, Place, ShippedPiece, record
from onion.checkpointing.atomic_files import replace_file

KEPT = Path(__file__).parents[1] / "kept"

ENOUGH = 2
"""Seeds of each data set that all kinds of mask have to have before one of them is the best."""


class PretrainingStudy(Study[Piece]):
    """The pieces; ``out`` has corpora and checkpoints, ``kept`` the results."""

    name, text, noun, table = "pretraining", __doc__, "arm", "pretraining_study.md"
    libraries = ("paddlepaddle",)
    names = (*(arm.name for arm in ARMS), LONGER)

    def __init__(self, given: Namespace) -> None:
        super().__init__(given)
        self.scale: float = given.scale
        self.work, self.folder = self.folder, given.kept.absolute()

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--kept", type=Path, default=KEPT, help="of the results")
        parser.add_argument("--threads", type=int, default=THREADS, help="of a piece")
        parser.add_argument("--scale", type=float, default=1.0, help="below 1: a trial, with so much of everything")

    @classmethod
    def _options(cls, arguments: Sequence[str] | None) -> Namespace:
        given = super()._options(arguments)
        if given.scale < 1:  # nothing of a trial may stand beside the results
            given.out = given.out / f"scale-{given.scale:g}"
            given.kept, given.table = given.out / "kept", given.out / cls.table
        given.table.parent.mkdir(parents=True, exist_ok=True)
        return given

    @classmethod
    def main(cls, arguments: Sequence[str] | None = None) -> int:
        """Run what is missing, then what is known to be missing only after that: the best arm for longer."""
        return super().main(arguments) or super().main(arguments)

    def arms(self) -> list[Arm]:
        """Return the arms, with the longer one as soon as it is known which is the best."""
        best = self.best()
        return [*ARMS, *([longer(best)] if best else [])]

    def best(self) -> Arm | None:
        """Return the kind of mask with the best mean of the figures that all have; None: some have too few seeds."""
        figures = {arm: self._figures(arm) for arm in LEVELS}
        shared = set.intersection(*map(set, figures.values()))
        if any(sum(of == data for of, _ in shared) < ENOUGH for data in DATA_SETS):
            return None
        return max(LEVELS, key=lambda arm: statistics.mean(figures[arm][each] for each in shared))

    def _figures(self, arm: Arm) -> dict[tuple[Data, int], float]:
        found = {(piece.data, piece.seed): self.read(piece) for piece in fine_tunings(arm)}
        return {each: result["figure"] for each, result in found.items() if result}

    def runs(self) -> Iterator[Piece]:
        """Yield the pieces of the chosen arms, each behind those that it needs."""
        arms = [arm for arm in self.arms() if self.chosen(arm.name)]
        yield from dict.fromkeys(each for arm in arms for piece in pieces_of(arm) for each in _with_needs(piece))

    def stem(self, run: Piece) -> str:
        return run.stem

    def record(self, run: Piece) -> Any:
        return record(run, self.data, self.scale)

    def files(self, run: Piece) -> list[Path]:
        return [self.data / name for piece in _with_needs(run) for name in piece.files]

    def needs(self, run: Piece) -> Sequence[Piece]:
        return run.needs

    def is_there(self, run: Piece) -> bool:
        place = self.place(run)
        return is_whole(place.own, place.log)

    def place(self, run: Piece) -> Place:
        needs = [self._own(need) for need in run.needs]
        return Place(self._own(run), self._among_runs(run), self.data, needs, self.scale, self.given.threads)

    def _own(self, run: Piece) -> Path:
        return self._among_runs(run) if run.room is None or self.scale < 1 else run.room

    def _among_runs(self, run: Piece) -> Path:
        return self.work / "runs" / self.path(run).stem

    def execute(self, run: Piece) -> Result:
        place = self.place(run)
        for folder in (place.own, place.named):
            folder.parent.mkdir(parents=True, exist_ok=True)
        found = run.execute(place)
        place.log.unlink()
        return {"threads": place.threads, **found}

    def summary(self, result: Result) -> str:
        told = {**result.get("report", {}), **{name: result[name] for name in ("figure",) if name in result}}
        return ", ".join(f"{name} {value:.4g}" for name, value in list(told.items())[:4])

    def page(self) -> str:
        return page(self.findings(), self.scale)

    def write_page(self, table: Path) -> bool:
        if not super().write_page(table):
            return False
        told, folder = card(self.findings()), self._own(ShippedPiece())
        if told is not None and folder.is_dir():
            replace_file(folder / "README.md", told.encode())
        return True

    def findings(self) -> Findings:
        return Findings(self.arms(), self.read)


def _with_needs(piece: Piece) -> Iterator[Piece]:
    """Yield what a piece needs, then the piece."""
    for need in piece.needs:
        yield from _with_needs(need)
    yield piece


if __name__ == "__main__":
    sys.exit(PretrainingStudy.main())
