"""Pieces of work, and the folder that keeps their results: a JSON file for each, under a name that says what was run.

A result counts as long as its settings, its data files and its encoder are what they were; whatever changes makes
another name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.results.rows import COMMON, Row
from onion.disk import replace_file


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


def settings_of(row: Row) -> dict[str, Any]:
    """Return all that decides about a row's figures, except the seed and the content of the files."""
    own = {"task": row.task, "encoder": row.encoder, "passes": row.passes, "lr": row.lr}
    return {**COMMON, **own, "figures": row.figures, "options": {"max_length": row.max_length, **row.options}}


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
    """

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder, self.data = folder, data

    def path(self, piece: Piece) -> Path:
        """Return where the result of a piece is, or will be."""
        files = files_of(piece.row, self.data)
        sums = [_sum(files["train"]), *((title, _sum(path)) for title, path in files["dev"].items())]
        record = json.dumps([settings_of(piece.row), sums], sort_keys=True)
        digest = hashlib.sha256(record.encode()).hexdigest()[:12]
        return self.folder / f"{piece.row.name}.{piece.side}.{piece.seed}.{digest}.json"

    def read(self, piece: Piece) -> dict[str, Any] | None:
        """Return the result of a piece; None: it has not been run, with these settings and files, to its end."""
        if missing_files(piece.row, self.data):
            return None
        try:
            found = json.loads(self.path(piece).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def keep(self, piece: Piece, result: dict[str, Any]) -> None:
        """Keep the result of a piece; the file appears whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.path(piece), (json.dumps(result, indent=1) + "\n").encode())


@cache
def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
