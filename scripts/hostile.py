"""Send hostile requests to the service of a run, one by one: each is refused, and the run learns the same bits.

    python scripts/hostile.py --requests 200 --seed 7

A trainer learns from a spool that a producer fills, controlled by a ControlServer with a token on loopback. Requests of
every kind in ``abusing.requests`` are drawn with the seed; now and then a friend asks for a prediction, which draws
random numbers. Each hostile request has to be answered with a 4xx, or its connection to be closed, and each friendly
one to be answered. In the end the run is stopped, and another one learns the same samples, which nobody asks for
anything. One line of JSON; exit status 1 if the bits of the two differ, a request was answered otherwise, a command was
lost or added, files were left open, half of anything was written, or the log tells of an error. What comes at the same
time, slowly, and in crowds is in ``abuse.py``.
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
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

from abusing.remains import LEFT, complaints, half_written, handles
from abusing.requests import GIVEN, KEY, MAKERS, half, never_finishes
from abusing.siege import how_far
from abusing.target import Target
from abusing.trainer import STEPS
from abusing.undisturbed import compared
from abusing.verdict import JOURNAL, commands_in
from streaming.children import Child, python
from streaming.waiting import comes, free_port, until

Kind = Callable[[Random, Target], "bytes | Iterable[bytes]"]

KINDS: dict[str, Kind] = {
    # A command that was there before is answered as the first one was: that is no refusal.
    **{name: make for name, make in MAKERS.items() if name != "replayed"},
    "endless": never_finishes,
    "half": half,
}

FRIEND = 10
"""Hostile requests between two of a friend."""

MANY = 10**9
"""Samples: more than any run has time for."""


def main() -> int:
    """Do it; return the exit status."""
    asked = _asked()
    with tempfile.TemporaryDirectory() as name, ExitStack() as ends:
        folder, log = Path(name, "attacked"), Path(name, "log")
        target = Target(free_port(), secrets.token_urlsafe())
        folder.mkdir()
        os.environ["ONION_TOKEN"] = target.token
        producer = python("streaming.producer", "spool", folder, MANY, 0.05, asked.seed)
        ends.callback(producer.end)
        trainer = python("abusing.trainer", folder, target.port, log=log)
        ends.callback(trainer.end)
        told = _attacked(target, folder, trainer, asked)
        producer.end()
        told |= {"log": complaints(log), "half_written": half_written(folder / "run")}
        told |= compared(folder / "run", Path(name, "undisturbed"))
    told["seed"] = asked.seed
    print(json.dumps(told))
    return 0 if _is_well(told) else 1


def _attacked(target: Target, folder: Path, trainer: Child, asked: argparse.Namespace) -> dict[str, Any]:
    """Give the friend's command, send the requests, stop the run; tell what was seen."""
    steps, draw = folder / STEPS, Random(asked.seed)  # noqa: S311
    until(lambda: target.call("PATCH", "/settings", json.loads(GIVEN), KEY))
    until(lambda: _predicts(target))
    begun, first = handles(trainer.process.pid), how_far(steps)
    answers: dict[str, Counter[str]] = {}
    predictions = Counter[bool]()
    for number in range(asked.requests):
        name = draw.choice(list(KINDS))
        answers.setdefault(name, Counter())[sent(target, KINDS[name], draw)] += 1
        if number % FRIEND == 0:
            predictions[_predicts(target)] += 1
    until(lambda: how_far(steps) > first)
    comes(lambda: handles(trainer.process.pid) <= begun + LEFT)  # the service has heard who has gone
    ended = handles(trainer.process.pid)
    until(lambda: target.call("POST", "/stop", None, "idempotency-key: stop"))
    until(lambda: trainer.over)
    return {
        "requests": asked.requests,
        "answers": {name: dict(tally) for name, tally in sorted(answers.items())},
        "wrong_answers": wrong(answers),
        "predictions": predictions[True],
        "predictions_refused": predictions[False],
        "commands": commands_in(folder / "run" / JOURNAL),
        "handles": [begun, ended],
    }


def sent(target: Target, make: Kind, draw: Random) -> str:
    """Draw a request and send it; return the status of its answer, ``closed`` or ``silent``."""
    request = make(draw, target)
    return target.provoke([request] if isinstance(request, bytes) else request)


def wrong(answers: dict[str, Counter[str]]) -> dict[str, int]:
    """Return how often a request was neither answered with a 4xx nor closed."""
    told = {f"{name}: {status}": count for name, tally in answers.items() for status, count in tally.items()}
    return {words: count for words, count in told.items() if not words.rpartition(": ")[2].startswith(("4", "closed"))}


def _predicts(target: Target) -> bool:
    answer = target.call("POST", "/predict", {"inputs": [1, 2, 3]})
    return answer is not None and len(answer["predictions"]) == 3


def _is_well(told: dict[str, Any]) -> bool:
    begun, ended = told["handles"]
    broken = told["wrong_answers"] or told["predictions_refused"] or told["log"] or told["half_written"]
    return bool(told["same"] and not broken and told["commands"] == ["set", "stop"] and ended <= begun + LEFT)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6, help="default: another each time")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
