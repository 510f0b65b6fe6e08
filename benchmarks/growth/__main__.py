"""Growth: cost against batch size, length, layers, width, tasks, rings and rows.

    python -m benchmarks.growth [--rounds 5] [--only batch length layers width tasks rings rows] [--keep]

Encoders make whole training steps on random ids; while one size grows, the others stay at 16 texts of 64 tokens,
2 layers of width 256. A round goes through all sizes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.measured import Measured, versions_of
from benchmarks.common.options import parser_of
from benchmarks.common.rounds import alternate
from benchmarks.common.sides import THREADS, Side, all_ready
from benchmarks.growth.axes import AXES, ROWS, Axis
from benchmarks.growth.figures import notes_of_rows, of_axis, of_rows, told
from benchmarks.growth.stores import make

NAMES = (*(axis.name for axis in AXES), "rows")
HOW = f"""\
One size grows while the others stay. Encoders: whole training steps (forward, backward, clipping, AdamW) on random ids
without padding; 16 texts of 64 tokens, 2 layers of width 256, 30,522 words, {THREADS} threads. Tasks: 1,024 batches of
one example a pass, shared among the tasks, SGD, two linear layers of 8. Rings: generators that only yield. Rows: cached
features of 4 to 12 tokens, a process for each number, the first batch of a shuffled pass by batches of 32 of similar
length, the files being in the page cache."""


def main(arguments: list[str] | None = None) -> int:
    """Measure and tell; return the exit status."""
    parser = parser_of("growth", __doc__, rounds=5)
    parser.add_argument("--only", nargs="*", choices=NAMES, default=NAMES, metavar="AXIS", help=f"of {NAMES}")
    given = parser.parse_args(arguments)
    measured = Measured("growth", "Growth", HOW, given.rounds, [])
    lasts = grow([axis for axis in AXES if axis.name in given.only], given.rounds, measured)
    if "rows" in given.only:
        grow_rows(ROWS, given.rounds, measured)
    measured.versions = versions_of(lasts)
    measured.tell(given.keep)
    return 0


def grow(axes: Sequence[Axis], rounds: int, measured: Measured) -> list[dict[str, Any]]:
    """Measure axes, those of one module in one process; return what the sides told at their ends."""
    lasts = []
    for module in dict.fromkeys(axis.module for axis in axes):
        own = [axis for axis in axes if axis.module == module]
        side = Side("onion", module, {"threads": THREADS, "axes": {axis.name: axis.sizes for axis in own}})
        with all_ready([side]):
            found = [each["onion"] for each in alternate([side], rounds)]
        lasts.append(side.last)
        for axis in own:
            times = {size: [each[axis.name][str(size)] for each in found] for size in axis.sizes}
            measured.figures += of_axis(axis, times)
            measured.notes.append(told(axis.what[0].upper() + axis.what[1:], times, axis.why))
    return lasts


def grow_rows(sizes: Sequence[int], rounds: int, measured: Measured) -> None:
    """Measure numbers of rows, each in fresh processes."""
    found: dict[int, list[dict[str, Any]]] = {size: [] for size in sizes}
    with tempfile.TemporaryDirectory() as room:
        stores = {size: make(Path(room) / str(size), size) for size in sizes}
        for _ in range(rounds):
            for size, store in stores.items():
                side = Side("onion", "benchmarks.growth.rows", {"folder": str(store), "warm": str(stores[sizes[0]])})
                with all_ready([side]):
                    found[size].append(side.round())
    measured.figures += of_rows(found)
    measured.notes += notes_of_rows(found)


if __name__ == "__main__":
    sys.exit(main())
