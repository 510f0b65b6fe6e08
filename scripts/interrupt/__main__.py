"""Interrupt runs that are saving, resume them in the same process, and compare each with an uninterrupted run.

    python -m scripts.interrupt --count 500 --seed 6

Each onion is run to its end once, with a checkpoint after every batch, in the foreground and in the background. Then
its runs get Ctrl-C: before an operation of a disk that is a little slow (up to three times, so that one comes while the
run ends, or waits for the writing thread), or before a line of the code that saves. There is no Signals item, and the
run is started again at once in this process, as in a notebook: the same onion, or a new one. Wherever a run begins, and
at the end, every checkpoint with a final name has to be valid; no run may be refused; the last one has to end with the
bits of the uninterrupted run. Prints a table; exit status 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

from scripts.console import columns, parser_of
from scripts.crash_test.attempt import add_options, onions_of
from scripts.interrupt.attempt import MODES, WAYS, Attempt, Place

ONIONS = ("noise", "best", "average", "slot")
"""Those of the catalogue that are tried by default."""


def main() -> int:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when the onions\' module loads Paddle
    asked = _asked()
    logging.getLogger("onion").setLevel(logging.ERROR)  # resuming from a checkpoint is no news here
    print(f"seed {asked.seed}", flush=True)
    onions = onions_of(asked.onions, asked.onion or ONIONS)
    with tempfile.TemporaryDirectory() as folder:
        places = [Place(name, onion, mode, Path(folder)) for name, onion in onions.items() for mode in MODES]
        attempts = list(_attempts(places, asked.count, asked.seed))
    print(_table(attempts))
    return 1 if not attempts or any(attempt.complaints for attempt in attempts) else 0


def _asked() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--count", type=int, default=500, help="runs to interrupt")
    add_options(parser, ", ".join(ONIONS))
    return parser.parse_args()


def _attempts(places: list[Place], count: int, seed: int) -> Iterator[Attempt]:
    """Interrupt the onions in turns, in both ways; tell what was wrong at once."""
    order = Random(seed).sample(places, len(places))
    for number in range(count):
        place, way = order[number % len(order)], WAYS[number // len(order) % len(WAYS)]
        attempt = place.interrupt(way, number, f"{seed}-{number}")
        for complaint in attempt.complaints:
            print(f"{number} {attempt.onion}, {attempt.mode}, before each {way} drawn: {complaint}", flush=True)
        yield attempt


def _table(attempts: list[Attempt]) -> str:
    rows: list[tuple[object, ...]] = [
        ("saving in the", "before", "tries", "interrupts", "torn", "refused", "other bits")
    ]
    for mode in MODES:
        for way in WAYS:
            some = [attempt for attempt in attempts if (attempt.mode, attempt.way) == (mode, way)]
            rows.append((mode, way, *_figures(some)))
    return columns([*rows, ("all", "", *_figures(attempts))])


def _figures(attempts: list[Attempt]) -> list[int]:
    interrupts = sum(attempt.interrupts for attempt in attempts)
    wrong = [sum(bool(getattr(attempt, what)) for attempt in attempts) for what in ("torn", "refused", "other")]
    return [len(attempts), interrupts, *wrong]


if __name__ == "__main__":
    sys.exit(main())
