"""docs/composition.md: a part for each example."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.common.tables import mean_and_spread, table, where_and_when
from benchmarks.composition.compared import THREADS, Example, Figure
from benchmarks.composition.pieces import Piece, Results
from benchmarks.composition.settings import settings_lines

Result = dict[str, Any]
Sides = dict[str, dict[int, Result]]
"""Variant -> seed -> result; what has not been run is not there."""

MISSING = "not run yet"

HEAD = f"""\
# What composition buys

Made by `make composition`; not edited by hand. Each part is one of the examples, run as its command line says, beside
plain training. In all of them the encoder is MiniLM (all-MiniLM-L6-v2: six layers, 384 wide), with {THREADS} threads.
Unless a part says otherwise, figures are of the weights after the last step, and nothing was chosen by the dev files.
Accuracy, F1 and correlations are times 100; what stands behind ± is the sample standard deviation over the seeds.
Seconds are the median over the seeds of what a run took, and say little where the machine had other work too. DATA is
the folder of all data sets.
"""


def page(examples: Sequence[Example], results: Results) -> str:
    """Return the whole page."""
    return "\n".join([HEAD, *(_part(example, _sides(example, results)) for example in examples)])


def _sides(example: Example, results: Results) -> Sides:
    return {
        variant: {
            seed: result
            for seed in example.seeds
            if (result := results.read(Piece(example, variant, seed))) is not None
        }
        for variant in example.variants
    }


def _part(example: Example, sides: Sides) -> str:
    """A title, what is compared, the commands, the table, the settings, where it ran."""
    found = [result for side in sides.values() for result in side.values()]
    reports = {variant: [result["report"] for result in side.values()] for variant, side in sides.items()}
    parts = [
        f"## {example.title}",
        example.text,
        "\n".join(f"    python {_command(example, variant)}" for variant in example.variants),
        table(_columns(example), _lines(example, sides)),
        "\n".join(settings_lines(example, reports)),
        where_and_when(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _command(example: Example, variant: str) -> str:
    folders = {name: f"OUT_OF_{name.upper()}" for name in example.variants}
    return example.variants[variant].format(data="DATA", seed="SEED", own="OUT", **folders)


def _columns(example: Example) -> list[str]:
    seeds = [f"seed {seed}" for seed in example.seeds]
    return ["", "figure", *seeds, *["mean"] * (len(seeds) > 1), "seconds"]


def _lines(example: Example, sides: Sides) -> Iterator[list[str]]:
    """A line for each figure of each variant; its name and seconds stand in the first."""
    for variant, side in sides.items():
        for number, figure in enumerate(example.figures):
            ends = ("", "") if number else (variant, _seconds(side))
            yield [ends[0], figure.title, *_values(example, figure, side), ends[1]]


def _values(example: Example, figure: Figure, side: dict[int, Result]) -> list[str]:
    values = {seed: figure.times * result["report"][figure.name] for seed, result in side.items()}
    cells = [f"{values[seed]:.1f}" if seed in values else MISSING for seed in example.seeds]
    mean = mean_and_spread(list(values.values())) if values else ""
    return [*cells, *[mean] * (len(cells) > 1)]


def _seconds(side: dict[int, Result]) -> str:
    return f"{statistics.median(result['report']['seconds'] for result in side.values()):.0f}" if side else ""
