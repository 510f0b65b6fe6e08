"""Attack the HTTP service of a run; the training must go on, and learn the same bits.

    python -m scripts.service_attack siege --seconds 60 --connections 10000
    python -m scripts.service_attack requests --count 200 --seed 7

A trainer learns from a spool that a producer fills, controlled through a ControlServer with a token on loopback. First
a legitimate client sets the learning rate. At the end the run is stopped, and another one learns the same samples
without an attack, with that command at the same step. One line of JSON; exit status 1 if the bits differ, a hostile
request was accepted or broke something, a command was lost or added, or files were left open.

siege     All attacks at once, in three stages: hostile requests beside incomplete and slow ones; the same and many
          connections; unusable samples with the right token. A stage lasts until each attack has made its requests and
          the training has made a step after that, a third of the seconds at least. The training must not stop.
requests  One after the other, drawn with the seed; sometimes the legitimate client asks for a prediction, which draws
          random numbers and must be answered. Each hostile request has to be answered with a 4xx, or its connection to
          be closed; nothing may be half-written, and the log may have no error.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from scripts.console import parser_of
from scripts.online.processes import Child, comes, free_port, python, until
from scripts.service_attack import outcome, siege
from scripts.service_attack.requests import GIVEN, KEY, MAKERS, Target, bad_samples, half, never_finishes
from scripts.service_attack.siege import STALL, Attack, asking, how_far
from scripts.service_attack.trainer import STEPS

REJECTED = "rejected.jsonl"

SAMPLES = 10**9
"""More than any run has time for."""

REQUESTS_PER_PREDICTION = 10
"""Hostile requests between two of the legitimate client."""

Kind = Callable[[Random, Target], "bytes | Iterable[bytes]"]

KINDS: dict[str, Kind] = {
    # A command that was there before is answered as the first one was: that is no refusal.
    **{name: make for name, make in MAKERS.items() if name != "replayed"},
    "endless": never_finishes,
    "half": half,
}


def main() -> int:
    given = _options()
    attack, is_well = {"siege": (under_siege, siege_is_well), "requests": (under_requests, requests_are_well)}[
        given.attack
    ]
    with tempfile.TemporaryDirectory() as name, ExitStack() as ends:
        folder, log = Path(name, "attacked"), Path(name, "log")
        target = Target(free_port(), secrets.token_urlsafe())
        folder.mkdir()
        os.environ["ONION_TOKEN"] = target.token
        producer = python("scripts.online.producer", "spool", folder, SAMPLES, 0.05, given.seed)
        ends.callback(producer.end)
        trainer = python("scripts.service_attack.trainer", folder, target.port, log=log)
        ends.callback(trainer.end)
        told = attack(target, folder, trainer, given)
        producer.end()
        told |= {"log": outcome.complaints(log), "half_written": outcome.half_written(folder / "run")}
        told |= outcome.compared(folder / "run", Path(name, "undisturbed"))
    print(json.dumps({**told, "seed": given.seed}))
    return 0 if is_well(told) else 1


def under_siege(target: Target, folder: Path, trainer: Child, given: argparse.Namespace) -> dict[str, Any]:
    """Set the learning rate, run the three stages, stop the run; report what was seen."""
    steps = folder / STEPS
    until(lambda: how_far(steps) > 0)
    until(lambda: target.call("PATCH", "/settings", json.loads(GIVEN), KEY))
    before = outcome.handles(trainer.process.pid)
    requests = {name: asking(make, target, given.seed + number) for number, (name, make) in enumerate(MAKERS.items())}
    for each in (siege.half, siege.slow):
        requests[each.__name__] = partial(each, target, draw=Random(given.seed))
    stages: dict[str, dict[str, Attack]] = {
        "requests": requests,
        "crowd": {**requests, "crowd": partial(siege.crowd, target, count=given.connections)},
        "samples": {"bad samples": asking(bad_samples, target, given.seed)},
    }
    progress: dict[str, siege.Progress] = {}
    tallies: dict[str, Counter[str]] = {}
    for name, attacks in stages.items():
        progress[name], counts = siege.lay(attacks, given.seconds / 3, steps)
        for attack, tally in counts.items():
            tallies.setdefault(attack, Counter()).update(tally)
    rejected = folder / "run" / REJECTED
    comes(lambda: rejected.is_file() and rejected.stat().st_size > 0)  # the run has come to one of them
    return {
        "steps": {name: each.steps for name, each in progress.items()},
        "longest_stall_s": max(each.stall for each in progress.values()),
        "answers": {name: dict(tally) for name, tally in tallies.items()},
        "wrong_answers": outcome.wrong_answers(
            {name: tally for name, tally in tallies.items() if name != "bad samples"}
        ),
        **_stopped(target, folder, trainer, before),
    }


def under_requests(target: Target, folder: Path, trainer: Child, given: argparse.Namespace) -> dict[str, Any]:
    """Set the learning rate, send the requests, stop the run; report what was seen."""
    steps, draw = folder / STEPS, Random(given.seed)
    until(lambda: target.call("PATCH", "/settings", json.loads(GIVEN), KEY))
    until(lambda: _predicts(target))
    before, first = outcome.handles(trainer.process.pid), how_far(steps)
    answers: dict[str, Counter[str]] = {}
    predictions = Counter[bool]()
    for number in range(given.count):
        name = draw.choice(list(KINDS))
        answers.setdefault(name, Counter())[sent(target, KINDS[name], draw)] += 1
        if number % REQUESTS_PER_PREDICTION == 0:
            predictions[_predicts(target)] += 1
    until(lambda: how_far(steps) > first)
    return {
        "requests": given.count,
        "answers": {name: dict(tally) for name, tally in sorted(answers.items())},
        "wrong_answers": not_refused(answers),
        "predictions": predictions[True],
        "predictions_refused": predictions[False],
        **_stopped(target, folder, trainer, before),
    }


def _stopped(target: Target, folder: Path, trainer: Child, before: int) -> dict[str, Any]:
    comes(
        lambda: outcome.handles(trainer.process.pid) <= before + outcome.MAX_LEFT_OPEN
    )  # the service has noticed who has gone
    after = outcome.handles(trainer.process.pid)
    until(lambda: target.call("POST", "/stop", None, "idempotency-key: stop"))
    until(lambda: trainer.over)
    return {"commands": outcome.commands_in(folder / "run" / outcome.JOURNAL), "handles": [before, after]}


def sent(target: Target, make: Kind, draw: Random) -> str:
    """Draw a request and send it; return the status of its answer, ``closed`` or ``silent``."""
    request = make(draw, target)
    return target.provoke([request] if isinstance(request, bytes) else request)


def not_refused(answers: dict[str, Counter[str]]) -> dict[str, int]:
    """Return how often a request was neither answered with a 4xx nor closed."""
    told = {f"{name}: {status}": count for name, tally in answers.items() for status, count in tally.items()}
    return {words: count for words, count in told.items() if not words.rpartition(": ")[2].startswith(("4", "closed"))}


def _predicts(target: Target) -> bool:
    answer = target.call("POST", "/predict", {"inputs": [1, 2, 3]})
    return answer is not None and len(answer["predictions"]) == 3


def siege_is_well(told: dict[str, Any]) -> bool:
    """Return whether a siege changed nothing, and the training went on."""
    went_on = min(told["steps"].values()) > 0 and told["longest_stall_s"] < STALL
    return went_on and told["rejected"] > 0 and _is_untouched(told)


def requests_are_well(told: dict[str, Any]) -> bool:
    """Return whether requests changed nothing, and left nothing behind."""
    return not (told["predictions_refused"] or told["log"] or told["half_written"]) and _is_untouched(told)


def _is_untouched(told: dict[str, Any]) -> bool:
    before, after = told["handles"]
    heeded = told["wrong_answers"] or told["commands"] != ["set", "stop"]
    return bool(told["same"] and not heeded and after <= before + outcome.MAX_LEFT_OPEN)


def _options() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("attack", choices=("siege", "requests"))
    parser.add_argument("--seconds", type=float, default=60.0, help="of a siege, at least")
    parser.add_argument("--connections", type=int, default=10_000, help="of a siege")
    parser.add_argument("--count", type=int, default=200, help="hostile requests that are sent one by one")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
