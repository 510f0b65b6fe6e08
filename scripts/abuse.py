"""Attack the service of a run in every way at once; the training must go on, and learn the very same bits.

    python scripts/abuse.py --seconds 60 --connections 10000

A trainer learns from a spool that a producer fills, controlled by a ControlServer with a token on loopback. Hostile
clients come in three stages: requests that no service should heed beside half and slow ones; all of them, and so many
connections; samples with the right token that cannot be used. A stage lasts until each attack has made its requests and
the training has made a step after that, a third of the seconds at least. Before that a friend sets the learning rate.
In the end the run is stopped, and another one learns the same samples undisturbed, with that one command at the same
place. One line of JSON; exit status 1 if the bits of the two differ, a hostile request was heeded or broke something, a
command was lost or added, files were left open, or the training stood still.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from abusing.crowds import crowd, half, slow
from abusing.remains import LEFT, handles
from abusing.requests import GIVEN, KEY, MAKERS, bad_samples
from abusing.siege import STALL, Attack, Progress, asking, how_far, lay
from abusing.target import Target
from abusing.trainer import STEPS
from abusing.undisturbed import compared
from abusing.verdict import JOURNAL, commands_in, wrong_answers
from streaming.children import Child, python
from streaming.waiting import comes, free_port, until

REJECTED = "rejected.jsonl"

MANY = 10**9
"""Samples: more than any run has time for."""


def main() -> int:
    """Do it; return the exit status."""
    asked = _asked()
    with tempfile.TemporaryDirectory() as name, ExitStack() as ends:
        folder, target = Path(name, "attacked"), Target(free_port(), secrets.token_urlsafe())
        folder.mkdir()
        os.environ["ONION_TOKEN"] = target.token
        producer = python("streaming.producer", "spool", folder, MANY, 0.05, asked.seed)
        ends.callback(producer.end)
        trainer = python("abusing.trainer", folder, target.port)
        ends.callback(trainer.end)
        told = _attacked(target, folder, trainer, asked)
        producer.end()
        told |= compared(folder / "run", Path(name, "undisturbed"))
    told["seed"] = asked.seed
    print(json.dumps(told))
    return 0 if _is_well(told) else 1


def _attacked(target: Target, folder: Path, trainer: Child, asked: argparse.Namespace) -> dict[str, Any]:
    """Give the friend's command, lay the sieges, stop the run; tell what was seen."""
    steps, third = folder / STEPS, asked.seconds / 3
    until(lambda: how_far(steps) > 0)
    until(lambda: target.call("PATCH", "/settings", json.loads(GIVEN), KEY))
    begun = handles(trainer.process.pid)
    requests = _requests(target, asked.seed)
    stages: dict[str, dict[str, Attack]] = {
        "requests": requests,
        "crowd": {**requests, "crowd": partial(crowd, target, count=asked.connections)},
        "samples": {"bad samples": asking(bad_samples, target, asked.seed)},
    }
    progress: dict[str, Progress] = {}
    tallies: dict[str, Counter[str]] = {}
    for name, attacks in stages.items():
        progress[name], counts = lay(attacks, third, steps)
        for attack, tally in counts.items():
            tallies.setdefault(attack, Counter()).update(tally)
    taken = tallies["bad samples"]
    rejected = folder / "run" / REJECTED
    comes(lambda: rejected.is_file() and rejected.stat().st_size > 0)  # the run has come to one of them
    comes(lambda: handles(trainer.process.pid) <= begun + LEFT)  # the service has heard who has gone
    ended = handles(trainer.process.pid)
    until(lambda: target.call("POST", "/stop", None, "idempotency-key: stop"))
    until(lambda: trainer.over)
    return {
        "steps": {name: each.steps for name, each in progress.items()},
        "longest_stall_s": max(each.stall for each in progress.values()),
        "answers": {name: dict(tally) for name, tally in tallies.items()},
        "wrong_answers": wrong_answers({name: tally for name, tally in tallies.items() if tally is not taken}),
        "commands": commands_in(folder / "run" / JOURNAL),
        "handles": [begun, ended],
    }


def _requests(target: Target, seed: int) -> dict[str, Attack]:
    asked = {name: asking(make, target, seed + number) for number, (name, make) in enumerate(MAKERS.items())}
    held = {each.__name__: partial(each, target, draw=Random(seed)) for each in (half, slow)}  # noqa: S311
    return {**asked, **held}


def _is_well(told: dict[str, Any]) -> bool:
    went_on = min(told["steps"].values()) > 0 and told["longest_stall_s"] < STALL
    heeded = told["wrong_answers"] or told["commands"] != ["set", "stop"]
    begun, ended = told["handles"]
    return bool(told["same"] and went_on and not heeded and told["rejected"] > 0 and ended <= begun + LEFT)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of attacks, at least")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6, help="default: another each time")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
