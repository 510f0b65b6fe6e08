"""Pieces of work, and the folder that keeps their results.

OUT/EXAMPLE.VARIANT.SEED.DIGEST.json   a result; the digest is of the command line and of the data files
OUT/runs/EXAMPLE.VARIANT.SEED/         what a run leaves, for runs that need it
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from benchmarks.common import kept
from benchmarks.common.processes import ROOT
from benchmarks.composition.compared import Example


@dataclass(frozen=True)
class Piece:
    """One run of an example.

    Attributes:
        example: that is run.
        variant: which side of it.
        seed: of everything that is random.
    """

    example: Example
    variant: str
    seed: int

    def __str__(self) -> str:
        return f"{self.example.name}, {self.variant}, seed {self.seed}"

    @property
    def line(self) -> str:
        """The command line, with names in braces where paths and the seed come."""
        return self.example.variants[self.variant]

    @property
    def needs(self) -> list[Piece]:
        """The pieces whose folders the command line names."""
        names = [name for _, name, _, _ in Formatter().parse(self.line) if name in self.example.variants]
        return [Piece(self.example, name, self.seed) for name in names if name is not None]

    @property
    def needed(self) -> bool:
        """Whether another piece needs what this one leaves."""
        return any(self in Piece(self.example, variant, self.seed).needs for variant in self.example.variants)


def pieces_of(examples: Sequence[Example]) -> Iterator[Piece]:
    """Give the pieces of examples, the variants of a seed next to each other."""
    for example in examples:
        for seed in example.seeds:
            yield from (Piece(example, variant, seed) for variant in example.variants)


def missing_files(example: Example, data: Path) -> list[Path]:
    """Return what an example needs and is not there: its data files, itself."""
    paths = [ROOT / "examples" / f"{example.name}.py", *(data / name for name in example.files)]
    return [path for path in paths if not path.is_file()]


class Results:
    """The folder of results.

    Args:
        folder: made when the first result is kept.
        data: the folder of data, whose files are part of what a result stands for.
    """

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder, self.data = folder.absolute(), data.absolute()

    def path(self, piece: Piece) -> Path:
        """Return where the result of a piece is, or will be."""
        lines = [piece.line, *(need.line for need in piece.needs)]
        record = [lines, [kept.sum_of(self.data / name) for name in piece.example.files]]
        return self.folder / kept.name_of(f"{piece.example.name}.{piece.variant}.{piece.seed}", record)

    def run_folder(self, piece: Piece) -> Path:
        """Return where a run leaves what it leaves."""
        return self.folder / "runs" / f"{piece.example.name}.{piece.variant}.{piece.seed}"

    def command(self, piece: Piece) -> list[str]:
        """Return the command line of a piece, after ``python``."""
        folders = {need.variant: self.run_folder(need) for need in piece.needs}
        names = {"data": self.data, "seed": piece.seed, "own": self.run_folder(piece), **folders}
        return [part.format(**names) for part in piece.line.split()]

    def read(self, piece: Piece) -> dict[str, Any] | None:
        """Return the result of a piece; None: it has not been run to its end, by this command and on these files."""
        return None if missing_files(piece.example, self.data) else kept.read(self.path(piece))

    def keep(self, piece: Piece, result: dict[str, Any]) -> None:
        """Keep the result of a piece; the file appears whole or not at all."""
        kept.keep(self.path(piece), result)

    def missing(self, pieces: Sequence[Piece]) -> list[Piece]:
        """Return what is to be run: pieces without a result, and those whose folder one of these needs and is gone."""
        open_ = [piece for piece in pieces if self.read(piece) is None]
        gone = [need for piece in open_ for need in piece.needs if not self.run_folder(need).is_dir()]
        return [piece for piece in pieces if piece in open_ or piece in gone]
