"""What several processes cost on one machine: onion's, beside one process, ``paddle.DataParallel`` and fleet.

    python -m benchmarks.distributed [--rounds 5] [--only NAME ...] [--batch 32] [--length 64] [--layers 6]
        [--width 384] [--steps 8] [--keep]

Paddle's launcher starts the ranks of every side, also where there is one. All sides train the same network on the same
batches; their losses are compared before any time is reported.
"""

from __future__ import annotations

import statistics
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.distributed.counters import COLLECTIVES, CONTROL
from benchmarks.frame.processes import FailedError, Round, Side, all_ready, alternate
from benchmarks.frame.section import Benchmark, Figure, Section
from benchmarks.frame.worker import Answer

ONE, PLAIN, EXACT = "onion, one process of 2 threads", "onion, two processes", "onion, two processes, exact"
WRAPPED, FLEET, APART = "paddle.DataParallel", "fleet", "two processes that exchange nothing"
TWO = {"processes": 2, "threads": 1}
SIDES: dict[str, tuple[str, dict[str, Any]]] = {
    "one": (ONE, {"processes": 1, "threads": 2, "loop": "onion"}),
    "plain": (PLAIN, {**TWO, "loop": "onion"}),
    "exact": (EXACT, {**TWO, "loop": "onion", "exact": True}),
    "paddle": (WRAPPED, {**TWO, "loop": "data_parallel"}),
    "fleet": (FLEET, {**TWO, "loop": "fleet"}),
    "apart": (APART, {**TWO, "loop": "data_parallel", "apart": True}),
}
"""Name -> title, and what its job says besides the shape."""

CLOSE = 1e-3
"""Largest difference of losses that count as equal."""

HOW = """\
A MiniLM of {layers} layers of {width} (random weights, no dropout) learns from pairs of sentences of {half} to
{length} random words, {batch} a batch whatever the number of processes, with AdamW and clipping. The ranks of every
side are started by Paddle's launcher: one process of 2 threads, or two of 1 thread on the same two cores, which speak
over gloo. A round is {steps} steps of each side, without the first. In every step all sides have the same loss to
{close:g}. This is the price of several processes, not a gain: one machine computes no faster with more of them, so no
speed is promised. `paddle.DataParallel` and fleet run a loop by hand around the same layers; their reducer sums each
bucket of gradients while others are being computed, and is called from C++, so only the step shows what it costs. The
last side is that loop under `no_sync()`: what two processes cost without any exchange. Milliseconds of collectives and
of the control channel are those of the rank that waits least, call by call: the wait for a slower rank is not in them.
Bytes are those that a rank gives to them; peak memory is that of the rank that has most. Started by hand instead of by
the launcher, the single process has 1,200 MiB; why it has more here was not found."""


def measure(section: Section, given: Namespace) -> None:
    """Run the rounds.

    Raises:
        FailedError: a side ended, or had other losses than the first one.
    """
    shape = {name: getattr(given, name) for name in ("batch", "length", "layers", "width", "steps")}
    section.how = HOW.format(**shape, half=given.length // 2, close=CLOSE)
    with TemporaryDirectory() as room:
        sides = []
        for name in given.only:
            title, more = SIDES[name]
            job = {**shape, **more, "folder": str(Path(room) / name)}
            sides.append(Side(title, "benchmarks.distributed.work", job))
        with all_ready(sides):
            rounds = alternate(sides, given.rounds)
    require_equal(rounds)
    section.figures += figures_of(rounds, given.batch)
    section.add_versions(sides)


def require_equal(rounds: Sequence[Round]) -> None:
    """Compare the losses of all sides that exchange something, each the mean over its ranks.

    Raises:
        FailedError: they differ by more than ``CLOSE``.
    """
    for each in rounds:
        found = {side: _losses(answer) for side, answer in each.items() if side != APART}
        first, *others = found
        for side in others:
            apart = [abs(one - other) for one, other in zip(found[first], found[side], strict=True)]
            if not max(apart) <= CLOSE:
                raise FailedError(f"{side} does not do the work of {first}, so no times: {found[side]}, {found[first]}")


def _losses(answer: Answer) -> list[float]:
    return [statistics.mean(losses) for losses in zip(*(rank["losses"] for rank in answer["ranks"]), strict=True)]


def figures_of(rounds: Sequence[Round], batch: int) -> list[Figure]:
    """Return speed, processor time and memory of each side, what it exchanged, and what that adds to a step."""
    sides = [*rounds[0]]

    def of_all(what: str, unit: str, value: Callable[[list[Answer]], float], digits: int) -> list[Figure]:
        return [
            Figure(f"{what}: {side}", unit, [value(each[side]["ranks"]) for each in rounds], digits=digits)
            for side in sides
        ]

    return [
        *of_all("speed", "examples a second", lambda ranks: batch / _step(ranks), 1),
        *of_all("processor time of a step", "s", _processor, 2),
        *of_all("peak memory of a rank", "MiB", lambda ranks: max(rank["peak_bytes"] for rank in ranks) / 2**20, 0),
        *_exchanged(rounds, [side for side in sides if side in (PLAIN, EXACT)]),
        *_beside(rounds, APART),
        *_beside(rounds, WRAPPED, [PLAIN]),
    ]


def _exchanged(rounds: Sequence[Round], sides: Sequence[str]) -> list[Figure]:
    """Return what the sides whose calls are known have exchanged in a step."""
    figures = []
    for kind, unit, scale in ((COLLECTIVES, "MB", 1e-6), (CONTROL, "bytes", 1.0)):
        for side in sides:
            ranks = [each[side]["ranks"] for each in rounds]
            given = [scale * _bytes(each, kind) for each in ranks]
            figures.append(Figure(f"{kind}, a step and rank: {side}", unit, given, digits=1 if scale < 1 else 0))
            figures.append(Figure(f"{kind}, a step: {side}", "ms", [1e3 * _transfer(each, kind) for each in ranks]))
    return figures


def _beside(rounds: Sequence[Round], other: str, sides: Sequence[str] | None = None) -> list[Figure]:
    """Return how many times as long as the step of another side those of these sides take."""
    if other not in rounds[0]:
        return []
    wanted = [side for side in rounds[0] if side != other and (sides is None or side in sides)]
    return [
        Figure(
            f"a step beside {other}: {side}",
            "times as long",
            [_step(each[side]["ranks"]) / _step(each[other]["ranks"]) for each in rounds],
        )
        for side in wanted
    ]


def _step(ranks: list[Answer]) -> float:
    """Return the seconds of the median step; a step is over when the last rank has ended it."""
    return statistics.median(map(max, zip(*(rank["seconds"] for rank in ranks), strict=True)))


def _processor(ranks: list[Answer]) -> float:
    return sum(rank["processor"] / rank["steps"] for rank in ranks)


def _bytes(ranks: list[Answer], kind: str) -> float:
    return max(sum(size for size, _ in rank["calls"][kind]) / rank["steps"] for rank in ranks)


def _transfer(ranks: list[Answer], kind: str) -> float:
    """Return the seconds a step of some calls, each as the rank knows it that came last and waited least."""
    calls = zip(*(rank["calls"][kind] for rank in ranks), strict=True)
    return sum(min(seconds for _, seconds in each) for each in calls) / ranks[0]["steps"]


BENCHMARK = Benchmark("distributed", "Several processes", HOW, __doc__, measure, rounds=5, parts=SIDES)
for name, default in (("batch", 32), ("length", 64), ("layers", 6), ("width", 384), ("steps", 8)):
    BENCHMARK.parser.add_argument(f"--{name}", type=int, default=default)
main = BENCHMARK.main


if __name__ == "__main__":
    sys.exit(main())
