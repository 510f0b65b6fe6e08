"""Pieces of work, and the folder that keeps their results: a JSON file for each, under a name that says what was run.

A result counts as long as its settings, its data files and its encoder are what they were; whatever changes makes
another name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import kept
from benchmarks.common.kept import sum_of
from benchmarks.results.rows import COMMON, OURS, THEIRS, Row


@dataclass(frozen=True)
class Piece:
    """One training, and the measurements after it.

    Attributes:
        row: what is trained.
        side: who trains.
        seed: of everything that is random.
    """

    row: Row
    side: str
    seed: int

    def __str__(self) -> str:
        return f"{self.row.name}, {self.side}, seed {self.seed}"


def pieces_of(rows: Sequence[Row], sides: Sequence[str]) -> Iterator[Piece]:
    """Give the pieces of rows, a row at a time, the sides of a seed next to each other."""
    for row in rows:
        for seed in row.seeds:
            yield from (Piece(row, side, seed) for side in row.sides if side in sides)


def settings_of(piece: Piece) -> dict[str, Any]:
    """Return all that decides about a piece's figures, except the seed and the content of the files."""
    row = piece.row
    head = {"head": THEIRS} if borrows_head(piece) else {}
    own = {"task": row.task, "encoder": row.encoder, "passes": row.passes, "lr": row.lr}
    return {**COMMON, **own, "figures": row.figures, "options": {"max_length": row.max_length, **row.options}, **head}


def borrows_head(piece: Piece) -> bool:
    """Tell whether a piece begins with the other side's head."""
    return piece.row.same_head and piece.side == OURS


def files_of(row: Row, data: Path) -> dict[str, Any]:
    """Return where the row's files are: ``train``, and ``dev`` by title."""
    return {"train": data / row.train, "dev": {title: data / name for title, name in row.dev.items()}}


def missing_files(row: Row, data: Path) -> list[Path]:
    """Return the data files of a row that are not there."""
    files = files_of(row, data)
    return [path for path in (files["train"], *files["dev"].values()) if not path.is_file()]


class Results:
    """The folder of results.

    Args:
        folder: made when the first result is kept.
        data: the folder of data, whose files are part of what a result stands for.
        work: for encoders and logs. Default: the same folder.
    """

    def __init__(self, folder: Path, data: Path, work: Path | None = None) -> None:
        self.folder, self.data, self.work = folder, data, work or folder

    def path(self, piece: Piece) -> Path:
        """Return where the result of a piece is, or will be."""
        files = files_of(piece.row, self.data)
        sums = [sum_of(files["train"]), *((title, sum_of(path)) for title, path in files["dev"].items())]
        record = [settings_of(piece), sums]
        return self.folder / kept.name_of(f"{piece.row.name}.{piece.side}.{piece.seed}", record)

    def read(self, piece: Piece) -> dict[str, Any] | None:
        """Return the result of a piece; None: it has not been run, with these settings and files, to its end."""
        return None if missing_files(piece.row, self.data) else kept.read(self.path(piece))

    def keep(self, piece: Piece, result: dict[str, Any]) -> None:
        """Keep the result of a piece; the file appears whole or not at all."""
        kept.keep(self.path(piece), result)
