"""Run what is missing, one piece at a time, and write the page and its picture anew after each.

    python -m benchmarks.online [NAME ...] [--data FOLDER] [--out FOLDER] [--table FILE]

All of it takes a few minutes of one core, most of them for MiniLM's vectors, which are computed once. A piece that is
finished is not run again as long as its data file and this code are the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.common import kept, machine
from benchmarks.common.driver import DATA, complete, no_data, run_all
from benchmarks.common.processes import ROOT
from benchmarks.common.worker import version_of
from benchmarks.online.page import drawn, page
from benchmarks.online.streams import STREAMS, Phase, Stream
from benchmarks.online.training import VARIANTS, train
from onion.checkpointing.atomic_files import replace_file
from onion.device import use_threads

SEEDS = (1, 2, 3, 4, 5)
CODE = ("streams.py", "training.py")
PACKAGES = ("paddlepaddle", "river")


@dataclass(frozen=True)
class Piece:
    """A run of a variant over a stream."""

    stream: Stream
    seed: int
    variant: str

    def __str__(self) -> str:
        return f"{self.stream.name}, {self.variant}, seed {self.seed}"


class Results:
    """The folder of results, each of which stands for its code and its data file too."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder, self.data = folder.absolute(), data.absolute()
        self._phases = cache(self._made)

    def path(self, piece: Piece) -> Path:
        """Return where the result of a piece is, or will be."""
        code = [kept.sum_of(Path(__file__).with_name(name)) for name in CODE]
        record = [code, kept.sum_of(self.data / piece.stream.file)]
        return self.folder / kept.name_of(f"{piece.stream.name}.{piece.variant}.{piece.seed}", record)

    def read(self, piece: Piece) -> dict[str, Any] | None:
        """Return the result of a piece; None: it has not been run."""
        return kept.read(self.path(piece)) if (self.data / piece.stream.file).is_file() else None

    def run(self, piece: Piece) -> bool:
        """Run a piece, keep its result, tell it."""
        report = train(self._phases(piece.stream, piece.seed), piece.variant, piece.seed)
        told = {
            "machine": machine.described(),
            "date": machine.today(),
            "versions": dict(zip(PACKAGES, map(version_of, PACKAGES), strict=True)),
        }
        kept.keep(self.path(piece), {**report, **told})
        print(f"    accuracy {100 * report['overall']:.1f}; {report['seconds']:.0f} s", flush=True)
        return True

    def _made(self, stream: Stream, seed: int) -> list[Phase]:
        return stream.make(self.data / stream.file, seed, self.folder)

    def sides(self, stream: Stream) -> dict[str, list[dict[str, Any]]]:
        """Return what there is of a stream, by variant."""
        found = {variant: [self.read(Piece(stream, seed, variant)) for seed in SEEDS] for variant in VARIANTS}
        return {variant: [each for each in results if each is not None] for variant, results in found.items()}


def pieces_of(streams: Sequence[Stream]) -> Iterator[Piece]:
    """Give the pieces of streams, those of the same samples next to each other."""
    for stream in streams:
        for seed in SEEDS:
            yield from (Piece(stream, seed, variant) for variant in VARIANTS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it; return the exit status."""
    options = _options(arguments)
    if no_data(options.data, "online"):
        return 2
    use_threads(1)
    results = Results(options.out, options.data)
    chosen = [each for each in STREAMS if each.name in (options.names or [each.name])]
    there = [each for each in chosen if complete(each.name, _missing(options.data / each.file))]

    def write() -> None:
        sides = {stream: results.sides(stream) for stream in STREAMS}
        replace_file(options.table, page(sides).encode())
        replace_file(options.table.with_name("online_drift.svg"), drawn(sides).encode())

    return run_all([each for each in pieces_of(there) if results.read(each) is None], results.run, write, options.table)


def _missing(path: Path) -> list[Path]:
    return [] if path.is_file() else [path]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    names = [stream.name for stream in STREAMS]
    parser = argparse.ArgumentParser(prog="online", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of all data sets")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "online", help="keeps the results")
    parser.add_argument("--table", type=Path, default=ROOT / "docs" / "online_learning.md")
    options = parser.parse_args(arguments)
    for name in options.names:  # ``choices`` would refuse that none is given at all
        if name not in names:
            parser.error(f"there is no stream {name!r}; there are {', '.join(names)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
