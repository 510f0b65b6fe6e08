"""``make compression``: narrower and shallower models with 8 bits, beside the models that they were made of.

    python -m benchmarks.compression.study [SET ...] [--seeds N] [--data FOLDER] [--kept FOLDER] [--out FOLDER]
        [--table FILE]

A model is fine-tuned by ``onion train``, compressed by ``onion compress``, and both are exported in several forms and
measured by one thread (``sides.py``). The checkpoint is chosen on a twentieth of the training file, and the figures are
those of the dev file, which nothing was chosen on. A run that was interrupted goes on; one that is finished is not made
again as long as its command line and its data are the same.

    KEPT/SET.SIZE.SEED.DIGEST.json   a result
    OUT/runs/                        the folders of the trainings, and the logs of those that are not finished
"""

from __future__ import annotations

import statistics
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

from benchmarks.composition import last_object
from benchmarks.compression.sides import CALIBRATION, FORMS, ROWS, RUN, TEACHER
from benchmarks.frame.processes import FailedError, end_of, run_logged
from benchmarks.frame.study import Result, Study, is_whole, sum_of
from benchmarks.frame.tables import MISSING, table, where_and_when

SEEDS = (1, 2, 3)
CHOSEN_ON = 0.05
"""The share of the training file on which the checkpoint is chosen."""


WHOLE = "whole"
SIZES = {
    WHOLE: "",
    "width 0.75": "--width 0.75",
    "width 0.5": "--width 0.5",
    "width 0.5, fewer layers": "--width 0.5 --layers {layers}",
}
LAYERS = {"minilm": 4, "wiki-zh": 2}
"""Encoder -> how many layers are kept, of 6 and of 4."""

COPIED = "layers that read what the layer below is taught"
"""How these are chosen; a part of what decides about a result, for the command line does not tell it."""


@dataclass(frozen=True)
class Set:
    """A data set: its folder, what is fine-tuned on it and how, and how it is compressed, to which sizes."""

    folder: str
    encoder: str
    train: str
    compress: str
    sizes: Sequence[str] = (WHOLE, "width 0.5", "width 0.5, fewer layers")


SETS = {
    "mrpc": Set("glue/mrpc", "minilm", "--passes 5", "--passes 3", tuple(SIZES)),
    "sst-2": Set("glue/sst-2", "minilm", "--passes 1 --max-length 64", "--passes 1"),
    "chnsenticorp": Set("chnsenticorp", "wiki-zh", "--passes 5 --learning-rate 1e-4", "--passes 3"),
}


@dataclass(frozen=True)
class Run:
    """A model of a set in a size, and a seed."""

    set: str
    size: str
    seed: int

    def __str__(self) -> str:
        return f"{self.set}, {self.size}, seed {self.seed}"


class Compression(Study[Run]):
    """A run is ``onion train`` or ``onion compress``, and the measuring of its forms."""

    name, text, noun, table = "compression", __doc__, "set", "compressed.md"
    names = tuple(SETS)
    libraries = ("paddlepaddle", "onnxruntime")

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many, of 1, 2, 3")
        parser.add_argument("--kept", type=Path, default=Path(__file__).parent / "kept", help="keeps the results")

    def __init__(self, given: Namespace) -> None:
        super().__init__(given)
        self.work, self.folder = self.folder / "runs", given.kept.absolute()

    def runs(self) -> Iterator[Run]:
        """Yield the whole model of each set and seed before what is made of it."""
        for name in SETS:
            if self.chosen(name):
                seeds = SEEDS[: self.given.seeds]
                yield from (Run(name, size, seed) for seed in seeds for size in SETS[name].sizes)

    def files(self, run: Run) -> list[Path]:
        folder = self.data / SETS[run.set].folder
        return [folder / "train.tsv", folder / "dev.tsv"]

    def stem(self, run: Run) -> str:
        return f"{run.set}.{run.size.replace(',', '').replace(' ', '-')}.{run.seed}"

    def record(self, run: Run) -> Any:
        whole = self.line(Run(run.set, WHOLE, run.seed))
        copied = [COPIED] if "--layers" in self.line(run) else []
        return [self.line(run), whole, list(FORMS), [sum_of(path) for path in self.files(run)], *copied]

    def place(self, run: Run) -> Path:
        """Return the folder of a training."""
        return self.work / self.path(run).stem

    def needs(self, run: Run) -> Sequence[Run]:
        return () if run.size == WHOLE else (Run(run.set, WHOLE, run.seed),)

    def is_there(self, run: Run) -> bool:
        return is_whole(self.place(run), self.log(run))

    def log(self, run: Run) -> Path:
        return self.work / f"{self.path(run).stem}.log"

    def line(self, run: Run) -> str:
        """Return the command line, with names in braces where paths come."""
        of, shared = SETS[run.set], f"--train {{train}} --dev {CHOSEN_ON} --seed {run.seed} --output {{run}}"
        if run.size == WHOLE:
            return f"train --task classification --encoder {of.encoder} {of.train} {shared}"
        sizes = SIZES[run.size].format(layers=LAYERS[of.encoder])
        return f"compress --run {{whole}} {sizes} {of.compress} {shared}"

    def execute(self, run: Run) -> Result:
        train, dev = self.files(run)
        names = {"train": train, "whole": self.place(Run(run.set, WHOLE, run.seed)), "run": self.place(run)}
        words = [part.format(**names) for part in self.line(run).split()]
        log = self.log(run)
        log.parent.mkdir(parents=True, exist_ok=True)
        run_logged(run, [sys.executable, "-m", "onion", *words, "--quiet"], {"OMP_NUM_THREADS": "2"}, log)
        measured = self.work / f"{self.path(run).stem}.sides.log"
        sides = ["benchmarks.compression.sides", names["whole"], names["run"], train, dev, self.work]
        run_logged(run, [sys.executable, "-m", *map(str, sides)], {"OMP_NUM_THREADS": "1"}, measured)
        found = last_object(measured)
        if TEACHER not in found:
            raise FailedError(f"{run}: its last line of JSON has no {TEACHER!r}; {end_of(measured)}")
        report = last_object(log)
        measured.unlink()
        log.unlink()
        return {"sides": found, "report": report}

    def summary(self, result: Result) -> str:
        return ", ".join(
            f"{name} {side['accuracy']:.4f} {side['times_faster']:.1f}x" for name, side in result["sides"].items()
        )

    def page(self) -> str:
        return "\n".join([HEAD, *(self._part(name) for name in SETS)])

    def _part(self, name: str) -> str:
        runs = [Run(name, size, seed) for size in SETS[name].sizes for seed in SEEDS]
        done = {run: result for run in runs if (result := self.read(run)) is not None}
        found = list(_measured(name, done))
        head = f"## {name}, of {SETS[name].encoder}"
        if not done:
            return f"{head}\n\n{MISSING.capitalize()}.\n"
        return "\n\n".join([head, _reached(found), table(COLUMNS, map(_line, found)), *_machines(done)]) + "\n"


# The page

HEAD = f"""\
# Compressed models, measured

Made by `make compression`; not edited by hand. A model is fine-tuned on the whole training file, but for a twentieth
on which its checkpoint is chosen, and [compressed](compression.md) with the same split: three quarters or half of the
heads and neurons; or half of them and fewer layers, 4 of the 6 of minilm or 2 of the 4 of wiki-zh.
`onion predict` computes a run with Paddle. All are exported as ONNX too: with 32 bits, with the tokens of the training
file only ("fewer tokens"), and with 8 bits whose ranges are found each time (dynamic) or were measured on
{CALIBRATION} rows of the training file (static).

Figures are the accuracy times 100 on the dev file, which nothing was chosen on, for each of the seeds, and the mean
difference from the whole model as `onion predict` computes it with Paddle. "Times faster" is beside that model too,
from text to label, by one thread, both in turns; the median over the seeds. "Seconds" are those for 1,000 texts, where
they were kept. "Changed" is the share of the dev file's first {ROWS} rows whose label is another one than the whole
model's.
"""
POINTS, TIMES = 1.0, 3.0
"""What a small model may lose, and how many times as fast it should be."""

COLUMNS = ["", "", *(f"seed {seed}" for seed in SEEDS), "difference", "seconds", "times faster", "MB", "changed"]


@dataclass(frozen=True)
class Measured:
    """A size in one form: what was measured of it, by seed, and the accuracy of the whole model of each seed."""

    size: str
    form: str
    sides: Mapping[int, Mapping[str, float]]
    whole: Mapping[int, float]

    @property
    def difference(self) -> float:
        """The mean difference of the accuracy from the whole model's, in points."""
        return 100 * statistics.mean(side["accuracy"] - self.whole[seed] for seed, side in self.sides.items())

    def median(self, name: str) -> float:
        return statistics.median(side[name] for side in self.sides.values())

    def median_if_measured(self, name: str, form: str) -> str:
        """Return a median as a text, which is empty where no seed has the figure."""
        known = [side[name] for side in self.sides.values() if name in side]
        return format(statistics.median(known), form) if known else ""


def _measured(name: str, done: Mapping[Run, Result]) -> Iterator[Measured]:
    """Yield the whole model in Paddle, and each size in each form."""
    for size in SETS[name].sizes:
        found = {run.seed: result["sides"] for run, result in done.items() if run == Run(name, size, run.seed)}
        whole = {seed: sides[TEACHER]["accuracy"] for seed, sides in found.items()}
        for form in (RUN, *FORMS):
            own = TEACHER if (size, form) == (WHOLE, RUN) else form
            yield Measured(size, form, {seed: sides[own] for seed, sides in found.items()}, whole)


def _machines(done: Mapping[Run, Result]) -> Iterator[str]:
    """Say where and when it was measured; for each machine which sizes, if there are several."""
    by_machine: dict[str, dict[Run, Result]] = {}
    for run, result in done.items():
        by_machine.setdefault(result["machine"], {})[run] = result
    for of_one in by_machine.values():
        told = where_and_when(list(of_one.values()))
        sizes = "; ".join(dict.fromkeys(run.size for run in of_one))
        yield told if len(by_machine) == 1 else f"{told} Sizes: {sizes}."


def _reached(found: Sequence[Measured]) -> str:
    """Say in a sentence which model is the fastest of those that are as good as the whole one, but for a point."""
    good = [each for each in found if each.sides and round(each.difference, 1) >= -POINTS]
    if not good:
        return f"No model is within {POINTS:g} point of the whole one."
    best = max(good, key=lambda each: each.median("times_faster"))
    times = best.median("times_faster")
    goal = "reached" if round(times, 1) >= TIMES else "not reached"
    return fill(
        f"Within a point of the whole model the fastest is: {best.size}, {best.form} ({times:.1f} times as fast, "
        f"{best.difference:+.1f} points, {len(best.sides)} of {len(SEEDS)} seeds). "
        f"The goal, {TIMES:g} times as fast within a point, is {goal}.",
        120,
    )


def _line(of: Measured) -> list[str]:
    title = of.size if of.form == RUN else ""
    if not of.sides:
        return [title, of.form, *[MISSING] * len(SEEDS), "", "", "", "", ""]
    return [
        title,
        of.form,
        *(f"{100 * of.sides[seed]['accuracy']:.1f}" if seed in of.sides else MISSING for seed in SEEDS),
        f"{of.difference:+.1f}",
        of.median_if_measured("seconds_per_1000", ".2f"),
        f"{of.median('times_faster'):.1f}",
        of.median_if_measured("megabytes", ".1f"),
        f"{100 * of.median('changed'):.1f} %",
    ]


if __name__ == "__main__":
    sys.exit(Compression.main())
