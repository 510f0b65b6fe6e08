"""Kill trainer, producer and redis-server at any moment, and count: each sample has gone into the weights exactly once.

    python scripts/exactly_once.py --samples 100000 --kills 200 --seed 7
    python scripts/exactly_once.py --source redis --samples 2000 --kills 5

A producer puts numbered samples in, a trainer learns from them: a network with a parameter a sample, to which the SGD
of a batch adds 1 for each time that the sample is in it. Processes are killed by SIGKILL after times drawn with the
seed, and started again; the last samples come when all kills are done. In the end every parameter of the newest
checkpoint has to be exactly 1. One line of JSON a source; exit status 1 if a count is another. A kill takes the process
away, not the machine.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streaming.children import Child, python
from streaming.counted import counts_in
from streaming.places import PLACES, redis_server
from streaming.producer import HELD

LIMIT = 1800.0
"""Seconds after which something hangs."""


def main() -> int:
    """Try each source that was asked for; return the exit status."""
    asked = _asked()
    exact = True
    for kind in asked.source or list(PLACES):
        with tempfile.TemporaryDirectory() as folder:
            told = prove(kind, Path(folder), asked.samples, asked.kills, asked.seed, asked.pause)
        print(json.dumps(told), flush=True)
        exact = exact and told["exact"] is True
    return 0 if exact else 1


def prove(kind: str, folder: Path, samples: int, kills: int, seed: int, pause: float) -> dict[str, object]:
    """Run trainer and producer of a source with so many kills; count."""
    draw = random.Random(seed)  # noqa: S311
    began, held = time.monotonic(), folder / HELD
    if kills:
        held.touch()
    with _children(kind, folder, samples, seed, pause) as children:
        done = Counter[str]()
        while not all(child.over for name, child in children.items() if name != "redis-server"):
            if time.monotonic() - began > LIMIT:
                raise SystemExit(f"{kind}: not finished after {LIMIT:g} s, {dict(done)} kills")
            time.sleep(draw.uniform(0.0, 4.0))
            if sum(done.values()) < kills:
                name = draw.choice(list(children))
                children[name].kill()
                done[name] = children[name].kills
            else:
                held.unlink(missing_ok=True)
    counts = counts_in(folder / "run")
    return {
        "source": kind,
        "samples": samples,
        "exact": bool(counts.keys() == {1.0} and counts[1.0] == samples),
        "counts": {f"{count:g}": number for count, number in counts.items()},
        "kills": dict(done),
        "seed": seed,
        "seconds": round(time.monotonic() - began),
    }


@contextmanager
def _children(kind: str, folder: Path, samples: int, seed: int, pause: float) -> Iterator[dict[str, Child]]:
    children: dict[str, Child] = {}
    try:
        if kind == "redis":
            children["redis-server"] = Child(lambda: redis_server(folder))
        children["producer"] = python("streaming.producer", kind, folder, samples, pause, seed)
        children["trainer"] = python("streaming.trainer", kind, folder, samples)
        yield children
    finally:
        for child in children.values():
            child.end()


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", action="append", choices=list(PLACES), help="only this one; may be given again")
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=200, help="for each source")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6, help="default: another each time")
    parser.add_argument("--pause", type=float, default=0.25, help="seconds between two lots of a producer")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
