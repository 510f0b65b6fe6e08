"""Kill trainer, producer and redis-server at random times, and count: each sample is in the weights exactly once.

    python -m scripts.online.exactly_once --samples 100000 --kills 200 --seed 7
    python -m scripts.online.exactly_once --source redis --samples 2000 --kills 5
    python -m scripts.online.exactly_once --source spool --samples 20000 --kills 40 --processes 4

A producer writes numbered samples, a trainer learns from them: a network with a parameter per sample, to which SGD adds
1 each time that the sample is in a batch. Processes are killed by SIGKILL at times drawn with the seed, and started
again; the last samples are written after all kills. In the end every parameter of the newest checkpoint has to be
exactly 1. With several processes a random rank of the trainer is killed; the others have to end by themselves, and the
training starts again in 1, 2, 4, ... processes. Prints a line of JSON per source; the exit status is 1 if a count is
wrong. A kill ends the process, not the machine.
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

from onion.checkpointing import checkpoint
from scripts.console import parser_of
from scripts.online.processes import Child, Ranks, python
from scripts.online.producer import HELD
from scripts.online.sources import PLACES, redis_server

LIMIT = 1800.0  # seconds after which a process must have hung


def main() -> int:
    """Test the chosen sources; return the exit status."""
    asked = _asked()
    exact = True
    for kind in asked.source or list(PLACES):
        with tempfile.TemporaryDirectory() as folder:
            told = prove(kind, Path(folder), asked.samples, asked.kills, asked.seed, asked.pause, asked.processes)
        print(json.dumps(told), flush=True)
        exact = exact and told["exact"] is True
    return 0 if exact else 1


def prove(
    kind: str, folder: Path, samples: int, kills: int, seed: int, pause: float, processes: int = 1
) -> dict[str, object]:
    """Run the trainer and the producer of a source with some kills; count."""
    draw = random.Random(seed)
    began, held = time.monotonic(), folder / HELD
    if kills:
        held.touch()
    with _children(kind, folder, samples, seed, pause, processes) as children:
        done = Counter[str]()
        while not all(child.over for name, child in children.items() if name != "redis-server"):
            if time.monotonic() - began > LIMIT:
                raise SystemExit(f"{kind}: not finished after {LIMIT:g} s, {dict(done)} kills")
            time.sleep(draw.uniform(0.0, 4.0 * processes))  # more of them take longer to start
            if sum(done.values()) < kills:
                name = draw.choice(list(children))
                children[name].kill()
                done[name] = children[name].kills
            else:
                held.unlink(missing_ok=True)
        trainer = children["trainer"]
        ranks = {}
        if isinstance(trainer, Ranks):
            ranks = {"ranks": dict(sorted(trainer.killed.items())), "left": trainer.left}
    counts = counts_in(folder / "run")
    return {
        "source": kind,
        "samples": samples,
        "exact": bool(counts.keys() == {1.0} and counts[1.0] == samples),
        "counts": {f"{count:g}": number for count, number in counts.items()},
        "kills": dict(done),
        **ranks,
        "seed": seed,
        "seconds": round(time.monotonic() - began),
    }


@contextmanager
def _children(
    kind: str, folder: Path, samples: int, seed: int, pause: float, processes: int
) -> Iterator[dict[str, Child | Ranks]]:
    children: dict[str, Child | Ranks] = {}
    try:
        if kind == "redis":
            children["redis-server"] = Child(lambda: redis_server(folder))
        children["producer"] = python("scripts.online.producer", kind, folder, samples, pause, seed)
        trainer, words = "scripts.online.trainer", (kind, folder, samples)
        if processes > 1:
            shared, draw = (*words, processes, "pieces"), random.Random(seed)
            children["trainer"] = Ranks(trainer, shared, processes, draw, folder / "trainer.log")
        else:
            children["trainer"] = python(trainer, *words)
        yield children
    finally:
        for child in children.values():
            child.end()


def _asked() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--source", action="append", choices=list(PLACES), help="only this one; may be repeated")
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=200, help="per source")
    parser.add_argument("--pause", type=float, default=0.25, help="seconds between two writes of the producer")
    parser.add_argument("--processes", type=int, default=1, help="of the trainer, at most: 1, 2, 4 or 8")
    return parser.parse_args()


def counts_in(folder: Path) -> Counter[float]:
    """Return the number of parameters with each value in the newest checkpoint.

    To three digits: several processes average the pieces of a batch, which ``trainer.Whole`` undoes up to rounding.
    """
    newest = checkpoint.newest(folder)
    if newest is None:
        raise SystemExit(f"{folder} contains no checkpoint")
    [table] = newest.items["counts"].values()
    return Counter(round(float(count), 3) for count in table.ravel())


if __name__ == "__main__":
    sys.exit(main())
