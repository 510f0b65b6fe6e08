"""``make students``: small students with and without a teacher, on one core.

    python -m benchmarks.students [SET ...] [--teacher SET=RUN ...] [--data FOLDER] [--out FOLDER] [--table FILE]

Sets are sst-2 (English, whose teacher is MiniLM, fine-tuned here) and chnsenticorp (Chinese, which needs --teacher: a
run of ``onion train``). A run that was interrupted goes on; one that is finished is not made again as long as its
command line, its data and its teacher are the same. A run that fails is reported, and the others are made all the same.

    OUT/STUDENT.WAY.SEED.DIGEST.json    a result
    OUT/SET.DIGEST/                     the rows that are drawn, the teacher, its logits, the folders of the runs
"""

from __future__ import annotations

import hashlib
import json
import random
import statistics
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.composition import last_object
from benchmarks.frame.processes import FailedError, end_of, run_logged
from benchmarks.frame.study import DIGEST_LENGTH, Result, Study, is_whole, sum_of
from benchmarks.frame.tables import MISSING, mean_and_spread, table, where_and_when
from onion.checkpointing.atomic_files import replace_file
from onion.tasks.students.settings import TINY

LABELLED, MORE = 4000, 12_000
"""Rows with labels, and rows whose labels nobody is shown: drawn from the training file, the same for all."""

SEEDS = (1, 2, 3)
INTERVAL = 4.303
"""Student's t for 95 % and three seeds, which is what a mean difference's standard error is multiplied by."""

TEACHER = "teacher"
SETS = {"sst-2": ("glue/sst-2", "minilm"), "chnsenticorp": ("chnsenticorp", None)}
"""Set -> its folder, and the encoder that is fine-tuned on it; None: a teacher has to be given."""

ALONE, TAUGHT = "alone", "teacher"
WAYS = {
    ALONE: "--teacher-weight 0",
    TAUGHT: "--logits {own}/logits",
    "copies": "--logits {own}/logits-copies-{seed} --copies 3",
    "unlabelled": "--logits {own}/logits-more --unlabelled {own}/more.tsv",
}
TOLD = {
    ALONE: "labels only",
    TAUGHT: "labels and teacher",
    "copies": "and 3 altered copies of each row",
    "unlabelled": "and 12,000 rows without labels",
}
STUDENTS = {**dict.fromkeys(("bow", "cnn", "lstm"), tuple(WAYS)), TINY: (ALONE, TAUGHT)}
"""Student -> the ways in which it is trained. Three layers of MiniLM take too long for the others on one core."""


@dataclass(frozen=True)
class Run:
    """A student of a set, a way to train it, and a seed; or the teacher of the set."""

    set: str
    student: str
    way: str = ""
    seed: int = 1

    def __str__(self) -> str:
        return f"{self.set}, {self.student}" + (f", {self.way}, seed {self.seed}" if self.way else "")


class Students(Study[Run]):
    """A run is ``onion distill``, or ``onion train`` for the teacher; its last line of JSON is its report."""

    name, text, noun, table = "students", __doc__, "set", "students.md"
    names = tuple(SETS)
    libraries = ("paddlepaddle",)

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        parser.add_argument("--teacher", action="append", default=[], metavar="SET=RUN", help="a run of onion train")

    def runs(self) -> Iterator[Run]:
        """Yield the teacher of each set, then its students."""
        for name in SETS:
            if self.chosen(name) and (self.given_teacher(name) or SETS[name][1]):
                if not self.given_teacher(name):
                    yield Run(name, TEACHER)
                for student, ways in STUDENTS.items():
                    yield from (Run(name, student, way, seed) for way in ways for seed in SEEDS)

    def given_teacher(self, name: str) -> Path | None:
        """Return the run that the command line gives for a set."""
        given = dict(each.partition("=")[::2] for each in self.given.teacher)
        return Path(given[name]).absolute() if name in given else None

    def own(self, run: Run) -> Path:
        """Return the folder of what all runs of a set share: the rows that are drawn, the teacher, its logits."""
        _, *made_of = self.record(Run(run.set, TEACHER))
        digest = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:DIGEST_LENGTH]
        return self.folder / f"{run.set}.{digest}"

    def needs(self, run: Run) -> Sequence[Run]:
        taught = run.student != TEACHER and self.given_teacher(run.set) is None
        return (Run(run.set, TEACHER),) if taught else ()

    def is_there(self, run: Run) -> bool:
        return is_whole(self.own(run) / "teacher", self.log(run))

    def log(self, run: Run) -> Path:
        return self.path(run).with_suffix(".log")

    def files(self, run: Run) -> list[Path]:
        folder = self.data / SETS[run.set][0]
        return [folder / "train.tsv", folder / "dev.tsv"]

    def stem(self, run: Run) -> str:
        return f"{run.set}.{run.student}.{run.way}.{run.seed}" if run.way else f"{run.set}.{run.student}"

    def record(self, run: Run) -> Any:
        given = self.given_teacher(run.set)
        teacher = sum_of(given / "run.json") if given else self.line(Run(run.set, TEACHER))
        return [self.line(run), teacher, LABELLED, MORE, [sum_of(path) for path in self.files(run)]]

    def line(self, run: Run) -> str:
        """Return the command line, with names in braces where paths and the seed come."""
        if run.student == TEACHER:
            return (
                "train --task classification --train {own}/train.tsv --dev {dev} --max-length 64 "
                f"--encoder {SETS[run.set][1]} --output {{own}}/teacher"
            )
        way = "" if run.student == TINY and run.way == TAUGHT else f" {WAYS[run.way]}"  # tiny asks its teacher anew
        return (
            f"distill --student {run.student} --teacher {{teacher}} --train {{own}}/train.tsv --dev {{dev}} "
            f"--seed {{seed}}{way} --output {{run}}"
        )

    def execute(self, run: Run) -> Result:
        own, dev = self.own(run), self.files(run)[1]
        draw(self.files(run)[0], own)
        names = {
            "own": own,
            "dev": dev,
            "seed": run.seed,
            "teacher": self.given_teacher(run.set) or own / "teacher",
            "run": own / self.path(run).stem,
        }
        words = [part.format(**names) for part in self.line(run).split()]
        log = self.log(run)
        run_logged(run, [sys.executable, "-m", "onion", *words, "--quiet"], {"OMP_NUM_THREADS": "1"}, log)
        report = last_object(log)
        if "dev.accuracy" not in report:
            raise FailedError(f"{run}: its last line of JSON has no 'dev.accuracy'; {end_of(log)}")
        log.unlink()
        return {"report": report}

    def summary(self, result: Result) -> str:
        return f"accuracy {result['report']['dev.accuracy']:.4f}"

    def page(self) -> str:
        parts = [HEAD, *(self._part(name) for name in SETS)]
        return "\n".join(part for part in parts if part)

    def _part(self, name: str) -> str:
        found = {run: self.read(run) for run in self._all(name)}
        done = {run: result for run, result in found.items() if result is not None}
        if not done:
            return ""
        columns = ["", "", *(f"seed {seed}" for seed in SEEDS), "mean", "gain over labels only"]
        accuracies = {run: 100 * result["report"]["dev.accuracy"] for run, result in done.items()}
        costs = table(
            ["", "million parameters", "seconds per 1000 texts", "times faster than the teacher"], _costs(done)
        )
        figures = table(columns, _lines(name, accuracies))
        return "\n\n".join([f"## {name}", figures, costs, where_and_when(list(done.values()))]) + "\n"

    def _all(self, name: str) -> list[Run]:
        students = [
            Run(name, student, way, seed) for student, ways in STUDENTS.items() for way in ways for seed in SEEDS
        ]
        return [Run(name, TEACHER), *students] if SETS[name][1] or self.given_teacher(name) else []


def draw(train: Path, folder: Path) -> None:
    """Draw the rows with labels and those without, unless they are there."""
    if (folder / "more.tsv").exists():
        return
    head, *rows = train.read_text(encoding="utf-8").splitlines()
    random.Random(1).shuffle(rows)
    folder.mkdir(parents=True, exist_ok=True)
    for name, some in (("train.tsv", rows[:LABELLED]), ("more.tsv", rows[LABELLED : LABELLED + MORE])):
        replace_file(folder / name, "".join(f"{row}\n" for row in [head, *some]).encode())


# The page

HEAD = f"""\
# Small students, measured

Made by `make students`; not edited by hand. {LABELLED:,} rows of the training file are labelled; {MORE:,}
more are used without labels. A teacher is fine-tuned on the labelled rows (`onion train`, 3 passes); each student is
trained by [`onion distill`](distillation.md) with the settings of its recipe: from the labels alone, with the teacher's
logits too, with three altered copies of each row (augmentation), with the rows without labels. Figures are the accuracy
times 100 on the dev file, as `onion distill` reports them: of the best of its checkpoints, which is chosen on these
very rows. ± is the sample standard deviation over the seeds; the gain is the mean difference, seed by seed, from the
same student with labels only, with its 95 % interval (Student's t, {len(SEEDS)} seeds). `bow`, `cnn`, `lstm` and `tiny`
are [these students](distillation.md#students). All runs have one thread. Times, from text to label, are medians over a
student's runs; where the machine had other work too, read the ratio, for which teacher and student took turns, and not
the seconds.
"""


def _lines(name: str, accuracies: dict[Run, float]) -> Iterator[list[str]]:
    """A line for the teacher, and one for each student and way."""
    teacher = accuracies.get(Run(name, TEACHER))
    if teacher is not None:
        yield ["teacher", "", f"{teacher:.1f}", "", "", "", ""]
    for student, ways in STUDENTS.items():
        for number, way in enumerate(ways):
            values = {seed: accuracies.get(Run(name, student, way, seed)) for seed in SEEDS}
            cells = [MISSING if value is None else f"{value:.1f}" for value in values.values()]
            there = [value for value in values.values() if value is not None]
            alone = {seed: accuracies.get(Run(name, student, ALONE, seed)) for seed in SEEDS}
            gains = [value - alone[seed] for seed, value in values.items() if value is not None and alone[seed]]  # type: ignore[operator]
            mean = mean_and_spread(there) if there else ""
            yield ["" if number else student, TOLD[way], *cells, mean, "" if way == ALONE else interval(gains)]


def interval(gains: Sequence[float]) -> str:
    """Return a mean difference with its 95 % interval; nothing unless all seeds are there."""
    if len(gains) < len(SEEDS):
        return ""
    mean = statistics.mean(gains)
    reach = INTERVAL * statistics.stdev(gains) / len(gains) ** 0.5
    return f"{mean:+.1f} ({mean - reach:+.1f} to {mean + reach:+.1f})"


def _costs(done: dict[Run, Result]) -> Iterator[list[str]]:
    """A line for the teacher and each student: sizes and times, the median over all its runs."""
    reports: dict[str, list[dict[str, Any]]] = {}
    for run, result in done.items():
        if run.student != TEACHER:
            reports.setdefault(run.student, []).append(result["report"])
    every = [report for side in reports.values() for report in side]
    if every:
        yield [TEACHER, *_cost(every, TEACHER), ""]
    for student, side in reports.items():
        faster = statistics.median(report["times_faster"] for report in side)
        yield [student, *_cost(side, "student"), f"{faster:.0f}" if faster >= 10 else f"{faster:.1f}"]


def _cost(reports: Sequence[dict[str, Any]], side: str) -> list[str]:
    parameters, seconds = (
        statistics.median(report[f"{side}.{name}"] for report in reports) for name in ("parameters", "seconds_per_1000")
    )
    return [f"{parameters / 1e6:.2f}", f"{seconds:.3g}"]


if __name__ == "__main__":
    sys.exit(Students.main())
