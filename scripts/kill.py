"""Kill runs anywhere, start them again, and hold each against the run that nobody killed; ``make kill`` runs it.

    python scripts/kill.py --count 200 --seed 6
    python scripts/kill.py --onion gan --kill "byte state.json 1234" --kill "step inner out 3"

Each onion is run to its end once. Then runs of it die by SIGKILL at a point (scripts/killing/points.py lists them) that
is drawn with the seed; each third run dies a second time after it has gone on. After every kill each checkpoint with a
final name is read and checked; the last restart runs to the end, and there every kept checkpoint has to have the same
bits as in the whole run: all items, counters, metrics, generators, the choice of the best. The log has to have the same
rows but for their seconds; no other file may be there or be missing.

A kill takes the process away, not the machine: what was written but not synced outlives it. Exit status 1 if any run
failed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from time import time_ns

from killing.attempt import GradientRollback, Place
from killing.points import Census, Point
from killing.pool import side_by_side
from killing.report import failure, line_of, tables
from killing.run import Onions
from killing.schedule import schedule

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when the onions' module loads Paddle; the runs share the processor


def main() -> int:
    """Try what was asked for; return the exit status."""
    asked = _asked()
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder  # who is killed does not tidy up
        onions = _onions(asked.onions, asked.onion)
        places = {name: Place(name, onion, Path(folder), asked.limit) for name, onion in onions.items()}
        if asked.kill:
            attempts = list(_one(places, asked.kill))
        else:
            print(f"seed {asked.seed}, {asked.jobs} at a time", flush=True)
            attempts = list(_many(places, asked.count, asked.seed, asked.jobs))
    return _told(attempts, asked.onions)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="runs to kill")
    parser.add_argument("--seed", type=int, default=time_ns() % 10**6, help="of all draws; default: another each time")
    parser.add_argument("--jobs", type=int, default=2, help="at the same time")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a run hangs")
    parser.add_argument("--onions", default="tests.onions", help="the module that has them, by name, as ONIONS")
    parser.add_argument("--onion", action="append", help="only this one; may be given again")
    parser.add_argument("--kill", action="append", type=_point, metavar="POINT", help="die there; again: then there")
    return parser.parse_args()


def _point(text: str) -> Point:
    try:
        return Point.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _onions(module: str, chosen: list[str] | None) -> Onions:
    sys.path.insert(0, str(Path.cwd()))  # as python -m does
    onions: Onions = import_module(module).ONIONS
    if unknown := set(chosen or ()) - onions.keys():
        sys.exit(f"{module} has no onion {', '.join(sorted(unknown))}; it has {', '.join(onions)}")
    return {name: onions[name] for name in chosen or onions}


def _one(places: Mapping[str, Place], points: list[Point]) -> Iterator[GradientRollback]:
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


def _many(places: Mapping[str, Place], count: int, seed: int, jobs: int) -> Iterator[GradientRollback]:
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


def _told(attempts: list[GradientRollback], module: str) -> int:
    """Print what came of it; return the exit status."""
    again = f"{os.path.relpath(sys.executable)} {os.path.relpath(__file__)} --onions {module}"
    failed = [attempt for attempt in attempts if attempt.failed]
    print("", tables(attempts), *(failure(attempt, again) for attempt in failed), sep="\n", flush=True)
    return 1 if failed or not attempts else 0


if __name__ == "__main__":
    sys.exit(main())
