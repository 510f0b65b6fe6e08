"""Growth: cost against batch size, length, layers, width, tasks, rings and rows.

    python -m benchmarks.growth [--rounds 5] [--only batch length layers width tasks rings rows] [--keep]

Encoders make whole training steps on random ids; while one size grows, the others stay at 16 texts of 64 tokens,
2 layers of width 256. A round goes through all sizes.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.frame.processes import THREADS, Side, all_ready, alternate
from benchmarks.frame.section import Benchmark, Figure, Section
from benchmarks.growth.rows import write_rows


@dataclass(frozen=True)
class Axis:
    """One size that grows while all others stay; ``why`` explains the curve, ``scale`` units of time are a second."""

    name: str
    what: str
    sizes: tuple[int, ...]
    why: str
    side: str = "steps:encoder"
    unit: str = "ms"
    scale: float = 1e3


LOOPS = "steps:loops"
AXES = (
    Axis(
        "batch",
        "a training step by batch size",
        (1, 2, 4, 8, 16, 32, 64, 128),
        "a straight line above a fixed part: AdamW and clipping go over all parameters, however small the batch",
    ),
    Axis(
        "length",
        "a training step by length",
        (16, 32, 64, 128, 256, 512),
        "a straight line above the same fixed part, until attention, whose scores grow with the square, is most of it; "
        "at 512 one array of scores has 67 MB, and the C library gives such memory back to the system and takes it "
        "again in many steps (page faults)",
    ),
    Axis(
        "layers",
        "a training step by layers",
        (1, 2, 4, 8, 12),
        "a straight line above what the embeddings and their part of AdamW cost",
    ),
    Axis(
        "width",
        "a training step by width",
        (128, 256, 512, 768),
        "products grow with the square (4 per doubling), all else with the width (2); narrow ones are mostly the else",
    ),
    Axis(
        "tasks",
        "a batch of a TaskSampler over a MultiHead by tasks",
        (1, 2, 4, 8, 16, 32, 64),
        "a straight line above the tiny network: a choice goes over all tasks, since a strategy may weigh each again",
        LOOPS,
        "µs",
        1e6,
    ),
    Axis(
        "rings",
        "a batch by items that do nothing",
        (10, 30, 100, 300, 1000),
        "two straight lines: Python keeps the frames of nested calls in pieces of 16 KiB, here one for some 80 items, "
        "and asks the system for every further one again in each batch",
        LOOPS,
        "µs",
        1e6,
    ),
)
ROWS = (10**3, 10**4, 10**5, 10**6, 10**7)
WHY_ROWS = (
    "fixed costs for few rows; for many a little more than a straight line: a sort of one random number a row, and a "
    "checksum of all files"
)
WHY_MEMORY = (
    "the features stay on the disk, in files that are mapped; what grows is the order of the pass and the lengths that "
    "it is made by, 8 bytes a row each, and the batches cut out of it"
)
NAMES = (*(axis.name for axis in AXES), "rows")
HOW = f"""\
One size grows while the others stay. Encoders: whole training steps (forward, backward, clipping, AdamW) on random ids
without padding; 16 texts of 64 tokens, 2 layers of width 256, 30,522 words, {THREADS} threads. Tasks: 1,024 batches of
one example a pass, shared among the tasks, SGD, two linear layers of 8. Rings: generators that only yield. Rows: cached
features of 4 to 12 tokens, a process for each number, the first batch of a shuffled pass by batches of 32 of similar
length, the files being in the page cache."""


def measure(section: Section, given: Namespace) -> None:
    grow([axis for axis in AXES if axis.name in given.only], section)
    if "rows" in given.only:
        grow_rows(ROWS, section)


def grow(axes: Sequence[Axis], section: Section) -> None:
    """Measure axes, those of one side in one process."""
    for name in dict.fromkeys(axis.side for axis in axes):
        own = [axis for axis in axes if axis.side == name]
        job = {"threads": THREADS, "axes": {axis.name: axis.sizes for axis in own}}
        side = Side("onion", f"benchmarks.growth.{name}", job)
        with all_ready([side]):
            found = [each["onion"] for each in alternate([side], section.rounds)]
        section.add_versions([side])
        for axis in own:
            times = {size: [each[axis.name][str(size)] for each in found] for size in axis.sizes}
            section.figures += of_axis(axis, times)
            section.notes.append(growth_note(axis.what[0].upper() + axis.what[1:], times, axis.why))


def grow_rows(sizes: Sequence[int], section: Section) -> None:
    """Measure numbers of rows, each in fresh processes."""
    found: dict[int, list[dict[str, Any]]] = {size: [] for size in sizes}
    with tempfile.TemporaryDirectory() as room:
        stores = {size: write_rows(Path(room) / str(size), size) for size in sizes}
        for _ in range(section.rounds):
            for size, store in stores.items():
                job = {"folder": str(store), "warm": str(stores[sizes[0]])}
                side = Side("onion", "benchmarks.growth.rows", job, stays=False)
                found[size].append(side.round())
    section.figures += of_rows(found)
    section.notes += notes_of_rows(found)


Times = Mapping[int, Sequence[float]]
"""Size -> seconds (or whatever grows), one for each round."""

MEGABYTE = 1e6


def growth(times: Times) -> list[float]:
    """Return by how much the cost grows from each size to the next, per doubling: 2 is a straight line."""
    medians = {size: statistics.median(values) for size, values in times.items()}
    sizes = list(medians)
    return [(medians[large] / medians[small]) ** (1 / math.log2(large / small)) for small, large in pairwise(sizes)]


def growth_note(what: str, times: Times, why: str) -> str:
    factors = ", ".join(f"{factor:.2f}" for factor in growth(times))
    sizes = list(times)
    return f"{what}, growth per doubling from {sizes[0]:,} to {sizes[-1]:,}: {factors}. {why[0].upper()}{why[1:]}."


def of_axis(axis: Axis, times: Times) -> Iterator[Figure]:
    for size, values in times.items():
        yield Figure(f"{axis.what}: {size}", axis.unit, [axis.scale * value for value in values])


def of_rows(found: Mapping[int, Sequence[Mapping[str, float]]]) -> Iterator[Figure]:
    for rows, rounds in found.items():
        for name, what, unit, scale in (
            ("first", "first batch of cached features", "ms", 1e3),
            ("order", "order of a pass", "ms", 1e3),
            ("own", "memory of its own for both", "MB", 1 / MEGABYTE),
            ("peak", "peak memory of the process with the mapped files", "MB", 1 / MEGABYTE),
        ):
            yield Figure(f"{what}: {rows:,} rows", unit, [scale * each[name] for each in rounds], digits=1)


def notes_of_rows(found: Mapping[int, Sequence[Mapping[str, float]]]) -> list[str]:
    first, order = (
        {rows: [each[name] for each in rounds] for rows, rounds in found.items()} for name in ("first", "order")
    )
    own = statistics.median([each["own"] for each in found[max(found)]]) / max(found)
    return [
        growth_note("First batch of cached features", first, WHY_ROWS),
        growth_note("Order of a pass", order, "the sort"),
        f"Memory of its own with the first batch of {max(found):,} rows: {own:.0f} bytes a row; {WHY_MEMORY}.",
    ]


main = Benchmark("growth", "Growth", HOW, __doc__, measure, rounds=5, parts=NAMES).main


if __name__ == "__main__":
    sys.exit(main())
