"""docs/online_learning.md: a part for each stream."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.common.tables import mean_and_spread, table, where_and_when
from benchmarks.online.picture import SMOOTH, Panel, picture
from benchmarks.online.streams import HELD_OUT, Stream
from benchmarks.online.training import BATCH, BIN, HIDDEN, RATE, VARIANTS

Sides = Mapping[str, Sequence[dict[str, Any]]]
"""Variant -> its results, one a seed; what has not been run is not there."""

MISSING = "not run yet"

HEAD = f"""\
# Learning from a stream that changes

Made by `python -m benchmarks.online`; not edited by hand. Every sample comes once, and is predicted before it is
trained on (`ProgressiveValidation`). Batches of {BATCH}, a hidden layer of {HIDDEN}, Adam with a learning
rate of {RATE:g}. Figures are accuracies times 100, means over the seeds (other orders of the samples,
other first weights); behind ± stands the sample standard deviation. `held out` is at the end of the stream, on
up to {HELD_OUT} samples of each of its parts that no run learns. Settings were fixed before
the first run, and not tuned: where `fast` is better than `drift`, the plain rate was too low to begin with.

![Accuracy over time](online_drift.svg)

A point is the accuracy over the latest {SMOOTH * BIN} samples, the mean of all seeds. At the dashed lines the samples
become others. What the variants add to a plain run:

"""


def page(sides: Mapping[Stream, Sides]) -> str:
    """Return the whole page."""
    variants = "\n".join(f"- {name}: {text}" for name, text in VARIANTS.items())
    return "\n".join([HEAD + variants + "\n", *(_part(stream, side) for stream, side in sides.items())])


def drawn(sides: Mapping[Stream, Sides]) -> str:
    """Return the picture."""
    return picture([_panel(stream, side) for stream, side in sides.items()], BIN)


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
