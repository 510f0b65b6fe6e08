"""Times, and growth per doubling."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from benchmarks.common.measured import Figure
from benchmarks.growth.axes import WHY_MEMORY, WHY_ROWS, Axis

Times = Mapping[int, Sequence[float]]
"""Size -> seconds (or whatever grows), one for each round."""

MEGABYTE = 1e6


def growth(times: Times) -> list[float]:
    """Return by how much the cost grows from each size to the next, per doubling: 2 is a straight line."""
    medians = {size: statistics.median(values) for size, values in times.items()}
    sizes = list(medians)
    return [(medians[large] / medians[small]) ** (1 / math.log2(large / small)) for small, large in pairwise(sizes)]


def told(what: str, times: Times, why: str) -> str:
    """Say how something grows, for a note."""
    factors = ", ".join(f"{factor:.2f}" for factor in growth(times))
    sizes = list(times)
    return f"{what}, growth per doubling from {sizes[0]:,} to {sizes[-1]:,}: {factors}. {why[0].upper()}{why[1:]}."


def of_axis(axis: Axis, times: Times) -> Iterator[Figure]:
    """Tell the time at each size."""
    for size, values in times.items():
        yield Figure(f"{axis.what}: {size}", axis.unit, [axis.scale * value for value in values])


def of_rows(found: Mapping[int, Sequence[Mapping[str, float]]]) -> Iterator[Figure]:
    """Tell times and memory at each number of rows.

    Args:
        found: rows -> what the side told, for each round.
    """
    for rows, rounds in found.items():
        for name, what, unit, scale in (
            ("first", "first batch of cached features", "ms", 1e3),
            ("order", "order of a pass", "ms", 1e3),
            ("own", "memory of its own for both", "MB", 1 / MEGABYTE),
            ("peak", "peak memory of the process with the mapped files", "MB", 1 / MEGABYTE),
        ):
            yield Figure(f"{what}: {rows:,} rows", unit, [scale * each[name] for each in rounds], digits=1)


def notes_of_rows(found: Mapping[int, Sequence[Mapping[str, float]]]) -> list[str]:
    """Say how they grow."""
    first, order = (
        {rows: [each[name] for each in rounds] for rows, rounds in found.items()} for name in ("first", "order")
    )
    own = statistics.median([each["own"] for each in found[max(found)]]) / max(found)
    return [
        told("First batch of cached features", first, WHY_ROWS),
        told("Order of a pass", order, "the sort"),
        f"Memory of its own with the first batch of {max(found):,} rows: {own:.0f} bytes a row; {WHY_MEMORY}.",
    ]
