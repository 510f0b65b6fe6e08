"""``make composition``: the examples that compose several tasks or networks, beside plain training.

    python -m benchmarks.composition [NAME ...] [--data FOLDER] [--out FOLDER] [--table FILE]

A run that was interrupted begins again; one that is finished is not made again as long as its command line and its data
files are the same. (After a change of an example that changes its figures, delete its results.) A run that fails is
reported, and the others are made all the same; the exit status is then 1.

    OUT/EXAMPLE.VARIANT.SEED.DIGEST.json   a result; the digest is of the command line and of the data files
    OUT/runs/EXAMPLE.VARIANT.SEED/         what a run leaves, for runs that need it
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from benchmarks import frame
from benchmarks.frame.processes import THREADS, FailedError, end_of, run_logged
from benchmarks.frame.study import Result, Study, is_whole, sum_of
from benchmarks.frame.tables import MISSING, mean_and_spread, table, where_and_when


@dataclass(frozen=True)
class Metric:
    """A number in the last line of an example, its title in the table, and the factor by which it is shown."""

    name: str
    title: str
    times: float = 100.0


@dataclass(frozen=True)
class Example:
    """An example, run in several variants with several seeds.

    ``variants`` are command lines after ``python``, in the order in which they are run. ``{data}`` is the folder of
    data, ``{seed}`` the seed, ``{own}`` a folder for what the variant leaves, ``{NAME}`` that of an earlier variant of
    the same seed. ``files`` are below the folder of data; results depend on their content too.
    """

    name: str
    title: str
    text: str
    files: tuple[str, ...]
    variants: Mapping[str, str]
    metrics: tuple[Metric, ...]
    seeds: tuple[int, ...] = (1, 2, 3)


@dataclass(frozen=True)
class Run:
    """One run of an example: a variant, and the seed of everything that is random."""

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
    def needs(self) -> list[Run]:
        """The runs whose folders the command line names."""
        names = [name for _, name, _, _ in Formatter().parse(self.line) if name in self.example.variants]
        return [Run(self.example, name, self.seed) for name in names if name is not None]

    @property
    def needed(self) -> bool:
        """Whether another run needs what this one leaves."""
        return any(self in Run(self.example, variant, self.seed).needs for variant in self.example.variants)


ACCURACY = Metric("accuracy", "accuracy")


def _of(folder: str) -> tuple[str, str]:
    return f"glue/{folder}/train.tsv", f"glue/{folder}/dev.tsv"


EXAMPLES = (
    Example(
        "joint_mrpc",
        "A task with helpers: MRPC",
        "MiniLM is fine-tuned on MRPC (3,668 pairs of sentences: do they say the same?), alone and together with three "
        "helping tasks over the same encoder: RTE (does one sentence follow from the other?), STS-B (how alike are two "
        "sentences, from 0 to 5?) and the masked words of MRPC's own texts. Each batch is of one task, drawn in "
        "proportion to the ratios 1 : 0.5 : 0.5 : 0.25; both sides see the very same batches of MRPC, and begin with "
        "the same head. Figures are on MRPC's 408 dev pairs.",
        (*_of("mrpc"), "glue/rte/train.tsv", "glue/sts-b/train.tsv"),
        {
            "alone": "examples/joint_mrpc.py {data}/glue --seed {seed} --alone",
            "joint": "examples/joint_mrpc.py {data}/glue --seed {seed}",
        },
        (ACCURACY, Metric("f1", "F1")),
    ),
    Example(
        "gan_bert",
        "Few labels and a generator: GAN-BERT on 1 % of SST-2",
        "GAN-BERT (Croce, Castellucci and Basili 2020) has 1 % of SST-2's labels, other texts of SST-2 without labels, "
        "and a generator of fake sentence vectors that the discriminator, a classifier with one label more, learns to "
        "tell from real ones. A batch is 32 labelled and 32 other sentences; each of the 673 labels is seen ten times, "
        "each time beside another sentence without one. Plain fine-tuning has the very same batches of labels. Figures "
        "are on SST-2's 872 dev sentences.",
        _of("sst-2"),
        {
            "plain": "examples/gan_bert.py {data}/glue/sst-2 --seed {seed} --plain",
            "gan": "examples/gan_bert.py {data}/glue/sst-2 --seed {seed}",
        },
        (ACCURACY,),
    ),
    Example(
        "distillation",
        "A small student: distillation on SST-2",
        "MiniLM's six layers are fine-tuned on SST-2; that teacher then teaches a student, which begins as two of "
        "MiniLM's layers, by its soft targets (Hinton et al. 2015), hidden states and attention. Beside it the same "
        "student learns alone, from the labels. Figures are on SST-2's 872 dev sentences, as onion train has them: of "
        "four checkpoints a pass, the one that is best on these very sentences. How much faster the student is, "
        "`make bench NAMES=layers` measures, in turns ([results](../benchmarks/results.md)).",
        _of("sst-2"),
        {
            "teacher": "examples/distillation.py {data}/glue/sst-2 --role teacher --seed {seed} --output {own}",
            "student": (
                "examples/distillation.py {data}/glue/sst-2 --role student --seed {seed} --output {own} "
                "--teacher {teacher}"
            ),
            "alone": "examples/distillation.py {data}/glue/sst-2 --role alone --seed {seed} --output {own}",
        },
        (ACCURACY, Metric("parameters", "million parameters", times=1e-6)),
        seeds=(1,),
    ),
    Example(
        "siamese",
        "Two towers: sentence similarity on STS-B",
        "Two towers, which are one encoder, turn the two sentences of a pair into vectors; their cosine is learned "
        "(SBERT, Reimers and Gurevych 2019). Figures are Spearman's correlation with the labels of STS-B's "
        "1,500 dev pairs, with MiniLM as it comes and after fine-tuning. all-MiniLM-L6-v2 "
        "was itself trained to give such vectors.",
        _of("sts-b"),
        {"siamese": "examples/siamese.py {data}/glue/sts-b --seed {seed} --output {own}"},
        (Metric("before", "Spearman before"), Metric("after", "Spearman after")),
        seeds=(1,),
    ),
)


class Composition(Study[Run]):
    """The examples; a run is a process whose last line of JSON is its report."""

    name, text, noun, table = "composition", __doc__, "example", "composition.md"
    libraries = ("paddlepaddle",)
    examples = EXAMPLES
    names = tuple(example.name for example in EXAMPLES)

    def runs(self) -> Iterator[Run]:
        """Yield the runs, the variants of a seed next to each other."""
        for example in self.examples:
            if self.chosen(example.name):
                for seed in example.seeds:
                    yield from (Run(example, variant, seed) for variant in example.variants)

    def files(self, run: Run) -> list[Path]:
        example = frame.ROOT / "examples" / f"{run.example.name}.py"
        return [example, *(self.data / name for name in run.example.files)]

    def stem(self, run: Run) -> str:
        return f"{run.example.name}.{run.variant}.{run.seed}"

    def record(self, run: Run) -> Any:
        lines = [run.line, *(need.line for need in run.needs)]
        return [lines, [sum_of(self.data / name) for name in run.example.files]]

    def needs(self, run: Run) -> Sequence[Run]:
        return run.needs

    def is_there(self, run: Run) -> bool:
        return is_whole(self.run_folder(run), self.log(run))

    def run_folder(self, run: Run) -> Path:
        return self.folder / "runs" / self.stem(run)

    def log(self, run: Run) -> Path:
        return self.path(run).with_suffix(".log")

    def command(self, run: Run) -> list[str]:
        folders = {need.variant: self.run_folder(need) for need in run.needs}
        names = {"data": self.data, "seed": run.seed, "own": self.run_folder(run), **folders}
        return [part.format(**names) for part in run.line.split()]

    def execute(self, run: Run) -> Result:
        for need in run.needs:
            if self.read(need) is None:
                raise FailedError(f"{run}: needs what {need} leaves, which has not come to its end")
        own = self.run_folder(run)
        shutil.rmtree(own, ignore_errors=True)  # or an interrupted run would go on there
        own.parent.mkdir(parents=True, exist_ok=True)
        log = self.log(run)
        run_logged(run, [sys.executable, *self.command(run)], {"OMP_NUM_THREADS": str(THREADS)}, log)
        report = last_object(log)
        lacks = [name for name in (*(each.name for each in run.example.metrics), "seconds") if name not in report]
        if lacks:
            raise FailedError(f"{run}: its last line of JSON has no {lacks[0]!r}; {end_of(log)}")
        log.unlink()
        if not run.needed:
            shutil.rmtree(own, ignore_errors=True)
        return {"report": report}

    def summary(self, result: Result) -> str:
        numbers = {name: value for name, value in result["report"].items() if isinstance(value, float)}
        return ", ".join(f"{name} {value:.3g}" for name, value in numbers.items())

    def page(self) -> str:
        return "\n".join([HEAD, *(_part(example, self.sides(example)) for example in self.examples)])

    def sides(self, example: Example) -> Sides:
        found = {
            name: {seed: self.read(Run(example, name, seed)) for seed in example.seeds} for name in example.variants
        }
        return {name: {seed: one for seed, one in some.items() if one is not None} for name, some in found.items()}


def last_object(log: Path) -> dict[str, Any]:
    """Return the last line of a log that is a JSON object; an empty one if there is none."""
    for line in reversed(log.read_text(encoding="utf-8", errors="replace").splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return {}


# The page

Sides = dict[str, dict[int, Result]]
"""Variant -> seed -> result; what has not been run is not there."""

HEAD = f"""\
# What composition buys

Made by `make composition`; not edited by hand. Each part is one of the examples, run as its command line says, beside
plain training. In all of them the encoder is MiniLM (all-MiniLM-L6-v2: six layers, 384 wide), with {THREADS} threads.
Unless a part says otherwise, figures are of the weights after the last step, and nothing was chosen by the dev files.
Accuracy, F1 and correlations are times 100; what stands behind ± is the sample standard deviation over the seeds.
Seconds are the median over the seeds of what a run took, and say little where the machine had other work too. DATA is
the folder of all data sets.
"""


def _part(example: Example, sides: Sides) -> str:
    """A title, what is compared, the commands, the table, the settings, where it ran."""
    found = [result for side in sides.values() for result in side.values()]
    seeds = [f"seed {seed}" for seed in example.seeds]
    reports = {variant: [result["report"] for result in side.values()] for variant, side in sides.items()}
    parts = [
        f"## {example.title}",
        example.text,
        "\n".join(f"    python {_command(example, variant)}" for variant in example.variants),
        table(["", "figure", *seeds, *["mean"] * (len(seeds) > 1), "seconds"], _lines(example, sides)),
        "\n".join(settings_lines(example, reports)),
        where_and_when(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _command(example: Example, variant: str) -> str:
    folders = {name: f"OUT_OF_{name.upper()}" for name in example.variants}
    return example.variants[variant].format(data="DATA", seed="SEED", own="OUT", **folders)


def _lines(example: Example, sides: Sides) -> Iterator[list[str]]:
    """A line for each figure of each variant; its name and seconds stand in the first."""
    for variant, side in sides.items():
        seconds = [result["report"]["seconds"] for result in side.values()]
        for number, metric in enumerate(example.metrics):
            ends = ("", "") if number else (variant, f"{statistics.median(seconds):.0f}" if seconds else "")
            yield [ends[0], metric.title, *_values(example, metric, side), ends[1]]


def _values(example: Example, metric: Metric, side: dict[int, Result]) -> list[str]:
    values = {seed: metric.times * result["report"][metric.name] for seed, result in side.items()}
    cells = [f"{values[seed]:.1f}" if seed in values else MISSING for seed in example.seeds]
    mean = mean_and_spread(list(values.values())) if values else ""
    return [*cells, *[mean] * (len(cells) > 1)]


# The lines of settings: all that a report has besides metrics

NOT_SETTINGS = {"example", "variant", "role", "seed", "seconds", "examples_per_second"}


def settings_lines(example: Example, reports: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Yield the settings that all runs have in common, then those of each variant (its reports, one a seed)."""
    told = {variant: [_settings_of(example, report) for report in side] for variant, side in reports.items()}
    first, *others = [settings for side in told.values() for settings in side] or [{}]
    common = {name: value for name, value in first.items() if all(each.get(name) == value for each in others)}
    if common:
        yield f"Settings: {_joined([common])}."
    for variant, side in told.items():
        own = [{name: value for name, value in settings.items() if name not in common} for settings in side]
        if any(own):
            yield f"- {variant}: {_joined(own)}"


def _settings_of(example: Example, report: Mapping[str, Any]) -> dict[str, str]:
    left_out = NOT_SETTINGS | {metric.name for metric in example.metrics}
    return {name.replace("_", " "): _text(value) for name, value in report.items() if name not in left_out}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value)) or "none"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _joined(runs: Sequence[dict[str, str]]) -> str:
    """Return the settings of some runs; where they differ, all that there were."""
    names = dict.fromkeys(name for settings in runs for name in settings)
    values = {name: dict.fromkeys(settings[name] for settings in runs if name in settings) for name in names}
    return "; ".join(f"{name} {' or '.join(values[name])}" for name in names)


if __name__ == "__main__":
    sys.exit(Composition.main())
