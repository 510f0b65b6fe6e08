"""Make missing runs, one at a time, and write the page and its picture after each.

    python -m benchmarks.online [NAME ...] [--data FOLDER] [--out FOLDER] [--table FILE]

All of it takes a few minutes of one core, most of them for MiniLM's vectors, which are computed once. A finished run is
not repeated as long as its data file and this code are the same.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frame.study import Result, Study, sum_of
from benchmarks.frame.tables import MISSING, mean_and_spread, table, where_and_when
from benchmarks.online.picture import SMOOTH, Panel, picture
from benchmarks.online.streams import HELD_OUT, STREAMS, Phase, Stream
from benchmarks.online.training import BATCH, BIN, HIDDEN, RATE, VARIANTS, train
from onion.checkpointing.atomic_files import replace_file
from onion.device import use_threads

SEEDS = (1, 2, 3, 4, 5)
CODE = ("streams.py", "training.py")

Sides = Mapping[str, Sequence[Result]]
"""Variant -> its results, one per seed; missing ones are left out."""

HEAD = f"""\
# Learning from a stream that changes

Made by `python -m benchmarks.online`; do not edit. Every sample comes once, and is predicted before it is trained on
(`ProgressiveValidation`). Batches of {BATCH}, a hidden layer of {HIDDEN}, Adam with a learning rate of {RATE:g}. Values
are accuracies in percent: means over the seeds (different orders of the samples and initial weights) ± the sample
standard deviation. `held out` is measured after the run, on up to {HELD_OUT} samples of each part of the stream that no
run trains on. Settings were fixed before the first run and not tuned: where `fast` is better than `drift`, the plain
rate was too low.

![Accuracy over time](online_drift.svg)

A point is the accuracy over the latest {SMOOTH * BIN} samples, averaged over the seeds. Dashed lines mark the changes.
The variants add to a plain run:

"""


@dataclass(frozen=True)
class Run:
    """A run of a variant over a stream."""

    stream: Stream
    seed: int
    variant: str

    def __str__(self) -> str:
        return f"{self.stream.name}, {self.variant}, seed {self.seed}"


class Online(Study[Run]):
    """The runs; each depends on its code and its data file."""

    name, text, noun, table = "online", __doc__, "stream", "online_learning.md"
    libraries = ("paddlepaddle", "river")
    streams = STREAMS
    names = tuple(stream.name for stream in STREAMS)

    def __init__(self, given: Any) -> None:
        super().__init__(given)
        use_threads(1)
        self._phases = cache(self._made)

    def runs(self) -> Iterator[Run]:
        """Yield the runs; those over the same samples are adjacent."""
        for stream in self.streams:
            if self.chosen(stream.name):
                for seed in SEEDS:
                    yield from (Run(stream, seed, variant) for variant in VARIANTS)

    def files(self, run: Run) -> list[Path]:
        return [self.data / run.stream.file]

    def stem(self, run: Run) -> str:
        return f"{run.stream.name}.{run.variant}.{run.seed}"

    def record(self, run: Run) -> Any:
        code = [sum_of(Path(__file__).with_name(name)) for name in CODE]
        return [code, sum_of(self.data / run.stream.file)]

    def execute(self, run: Run) -> Result:
        return train(self._phases(run.stream, run.seed), run.variant, run.seed)

    def summary(self, result: Result) -> str:
        return f"accuracy {100 * result['overall']:.1f}"

    def _made(self, stream: Stream, seed: int) -> list[Phase]:
        return stream.make(self.data / stream.file, seed, self.folder)

    def sides(self, stream: Stream) -> Sides:
        """Return the results of a stream, by variant."""
        found = {variant: [self.read(Run(stream, seed, variant)) for seed in SEEDS] for variant in VARIANTS}
        return {variant: [each for each in results if each is not None] for variant, results in found.items()}

    def page(self) -> str:
        variants = "\n".join(f"- {name}: {text}" for name, text in VARIANTS.items())
        return "\n".join([HEAD + variants + "\n", *(_part(stream, self.sides(stream)) for stream in self.streams)])

    def write_page(self, table: Path) -> bool:
        if not super().write_page(table):
            return False
        drawing = picture([_panel(stream, self.sides(stream)) for stream in self.streams], BIN)
        replace_file(table.with_name("online_drift.svg"), drawing.encode())
        return True


def _panel(stream: Stream, sides: Sides) -> Panel:
    each = inspect.signature(stream.make).parameters["each"].default / BIN
    curves = {variant: [result["curve"] for result in results] for variant, results in sides.items()}
    return Panel(stream.title, curves, [each * number for number in range(1, len(stream.phases))])


def _part(stream: Stream, sides: Sides) -> str:
    columns = ["", "all samples", "1,000 after each change", *(f"held out: {name}" for name in stream.phases), "alarms"]
    where = where_and_when([result for results in sides.values() for result in results])
    parts = [f"## {stream.title}", stream.text, table(columns, _lines(stream, sides)), where]
    return "\n\n".join(part for part in parts if part) + "\n"


def _lines(stream: Stream, sides: Sides) -> Iterator[list[str]]:
    for variant, results in sides.items():
        held_out = [[result["held_out"][place] for result in results] for place in range(len(stream.phases))]
        figures = [[result[name] for result in results] for name in ("overall", "after")] + held_out
        changes = f"{np.mean([result['changes'] for result in results]):.1f}" if variant == "drift" and results else ""
        yield [variant, *map(_cell, figures), changes]


def _cell(values: Sequence[float]) -> str:
    return mean_and_spread([100 * value for value in values]) if values else MISSING


if __name__ == "__main__":
    sys.exit(Online.main())
