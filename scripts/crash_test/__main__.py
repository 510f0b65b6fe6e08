"""Kill runs anywhere, resume them, and compare each with an uninterrupted run; ``make crash-test`` runs it.

    python -m scripts.crash_test --count 200 --seed 6
    python -m scripts.crash_test --onion gan --kill "byte state.json 1234" --kill "step inner out 3"

Each onion is run to its end once. Then runs of it are killed by SIGKILL at a point (points.py lists them) that is drawn
with the seed; each third run is killed again after it has resumed. After every kill each checkpoint with a final name
is read and checked. The last restart runs to the end, where every kept checkpoint has to equal that of the whole run in
all bits: items, counters, metrics, generators, the choice of the best. The log has to have the same rows except for
seconds, and there may be no other file. A kill is no power failure: what was written but not synced survives. Exit
status 1 if any run failed.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from scripts.console import columns, parser_of
from scripts.crash_test.attempt import Attempt, Place, Plan, add_options, onions_of
from scripts.crash_test.points import KINDS, Census, Point, kinds_in


def main() -> int:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when the onions\' module loads Paddle
    asked = _asked()
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder  # who is killed does not tidy up
        onions = onions_of(asked.onions, asked.onion or ())
        places = {name: Place(name, onion, Path(folder), asked.limit) for name, onion in onions.items()}
        if asked.kill:
            attempts = list(_one(places, asked.kill))
        else:
            print(f"seed {asked.seed}, {asked.jobs} at a time", flush=True)
            attempts = list(_many(places, asked.count, asked.seed, asked.jobs))
    return _told(attempts, asked.onions)


def _asked() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--count", type=int, default=200, help="runs to kill")
    parser.add_argument("--jobs", type=int, default=2, help="at the same time")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a run hangs")
    add_options(parser, "all")
    parser.add_argument("--kill", action="append", type=_point, metavar="POINT", help="die there; again: then there")
    return parser.parse_args()


def _point(text: str) -> Point:
    try:
        return Point.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _one(places: Mapping[str, Place], points: list[Point]) -> Iterator[Attempt]:
    """Kill each onion at the same points."""
    for place in places.values():
        _, whole = place.whole()
        print(line_of(whole, 0, 1), flush=True)
        yield whole
        if whole.failed:
            continue
        attempt = place.kill(points, "killed")
        if attempt is None:
            sys.exit(f"{place.name} ended before it came to one of these points")
        print(line_of(attempt, 1, 1), flush=True)
        yield attempt


def _many(places: Mapping[str, Place], count: int, seed: int, jobs: int) -> Iterator[Attempt]:
    """Run each onion without a kill, then kill them at points that are drawn."""
    censuses: dict[str, Census] = {}
    for census, whole in side_by_side(lambda name: places[name].whole(), places, jobs):
        print(line_of(whole, 0, count), flush=True)
        if census is not None:
            censuses[whole.onion] = census
        yield whole
    plans = schedule(censuses, count, seed)
    killed = side_by_side(lambda plan: places[plan.onion].follow(plan, censuses[plan.onion]), plans, jobs)
    for number, attempt in enumerate(killed, start=1):
        print(line_of(attempt, number, count), flush=True)
        yield attempt


def _told(attempts: list[Attempt], module: str) -> int:
    again = f"{os.path.relpath(sys.executable)} -m scripts.crash_test --onions {module}"
    failed = [attempt for attempt in attempts if attempt.failed]
    print("", tables(attempts), *(failure(attempt, again) for attempt in failed), sep="\n", flush=True)
    return 1 if failed or not attempts else 0


def schedule(censuses: Mapping[str, Census], count: int, seed: int) -> Iterator[Plan]:
    """Yield that many attempts, kind by kind, each of an onion that was tried least; each third kills twice."""
    having = {kind: [name for name in censuses if kind in kinds_in(censuses[name])] for kind in KINDS}
    kinds = [kind for kind in KINDS if having[kind]]
    tried: Counter[str] = Counter()
    chance = random.Random(seed)
    for number in range(count if kinds else 0):
        round_, place = divmod(number, len(kinds))
        least = min(tried[name] for name in having[kinds[place]])
        onion = chance.choice([name for name in having[kinds[place]] if tried[name] == least])
        tried[onion] += 1
        twice = (round_ + place) % 3 == 2  # other kinds in each round
        yield Plan(onion, kinds[place], twice, seed=f"{seed}-{number}")


T = TypeVar("T")
R = TypeVar("R")

_work: Callable[[Any], Any]


def side_by_side(work: Callable[[T], R], things: Iterable[T], jobs: int) -> Iterator[R]:
    """Apply a function to each thing, in that many processes, which are forked here and know all that we know."""
    # No Pool: its processes may have no processes of their own, as a DataLoader has.
    with ProcessPoolExecutor(jobs, get_context("fork"), initializer=_take, initargs=(work,)) as pool:
        yield from pool.map(_do, things)


def _take(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work


def _do(thing: Any) -> Any:
    return _work(thing)


MAX_COMPLAINTS = 5
"""Of an attempt that are printed."""


def line_of(attempt: Attempt, number: int, count: int) -> str:
    points = ", then ".join(map(str, attempt.points)) or "not killed"
    return f"{number:{len(str(count))}}/{count}  {'FAILED' if attempt.failed else 'same'}  {attempt.onion}: {points}"


def tables(attempts: Sequence[Attempt]) -> str:
    """Return both tables: an attempt that killed twice counts for both kinds."""
    onions = sorted({attempt.onion for attempt in attempts})
    kills = sum(len(attempt.points) for attempt in attempts)
    killed = [attempt for attempt in attempts if attempt.points]
    failed = sum(attempt.failed for attempt in attempts)
    by_kind = [(kind, attempt) for attempt in attempts for kind in attempt.kinds or ["none"]]
    kinds = [_counted(name, [attempt for kind, attempt in by_kind if kind == name]) for name in ("none", *KINDS)]
    kinds.append(_counted("twice", [attempt for attempt in attempts if len(attempt.points) > 1]))
    names = [_counted(name, [attempt for attempt in killed if attempt.onion == name]) for name in onions]
    return "\n\n".join(
        [
            columns([("kind of kill", "tried", "failures"), *kinds]),
            columns([("onion", "tried", "failures"), *names]),
            f"{kills} kills in {len(killed)} runs of {len(onions)} onions; {failed} failures",
        ]
    )


def _counted(name: str, attempts: Sequence[Attempt]) -> tuple[str, int, int]:
    return name, len(attempts), sum(attempt.failed for attempt in attempts)


def failure(attempt: Attempt, again: str) -> str:
    """Return what was wrong with an attempt, and the command that repeats it."""
    kills = chain.from_iterable(("--kill", str(point)) for point in attempt.points)
    words = ["--onion", attempt.onion, *(kills if attempt.points else ("--count", "0"))]
    complaints = [f"    {complaint}" for complaint in attempt.complaints[:MAX_COMPLAINTS]]
    more = len(attempt.complaints) - MAX_COMPLAINTS
    return "\n".join([f"{again} {shlex.join(words)}", *complaints, *([f"    and {more} more"] if more > 0 else [])])


if __name__ == "__main__":
    sys.exit(main())
