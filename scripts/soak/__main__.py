"""Learn from a stream for a simulated day, a batch a second, as fast as possible, to find whatever grows without limit.

    python -m scripts.soak --batches 86400 --limit 1200

A tiny network learns through all of it: a Spool that a producer keeps filled, StreamProvider, Journal, ControlServer
with a client that asks and sometimes commands, Saver, Logger, ProgressiveValidation, ReplayBuffer in a Switch,
MovingAverage and Publish. The client samples memory, threads, open files, and the sizes of files; a straight line
through the last three quarters of the samples gives the rise in a day. The same network is trained in a bare Paddle
loop, whose own growth (3.3.1 keeps a list of every ``paddle.to_tensor``) is reported beside it. One line of JSON; exit
status 1 if something rises by more than ALLOWED.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

from scripts.console import parser_of
from scripts.online.processes import ROOT, Child, free_port, python
from scripts.service_attack.requests import Target
from scripts.soak.growth import figures, rise

DAY = 86_400
"""Batches."""

MIB = 2**20
ALLOWED = {
    "memory": 16 * MIB,
    "threads": 0.5,
    "handles": 1.0,
    "checkpoints": 0.5,
    "spool": MIB,
    "spool_log": MIB,
    "journal": MIB,
    "rejected": MIB,
    "log": MIB,
}
"""By how much each may rise in a day. Memory: 16 MiB are 194 bytes a batch, so a tensor kept of every batch is noticed,
and what the C library's allocator takes in steps, a few MiB, is not. Threads and handles: none; the line for handles
moves a little, since connections and checkpoints come and go. The spool has its size in the settled part. The record,
the log and the rejected samples are kept for good: a row of some 300 bytes a command (one in five minutes), 500 batches
or bad sample (700 a day)."""

LOOKS_PER_COMMAND = 8

COMMANDS = (
    ("PATCH", "/settings", {"parameter_updater.learning_rate": 0.002}),
    ("POST", "/rings/replay_buffer/disable", None),
    ("POST", "/save", None),
    ("PATCH", "/settings", {"replay_buffer.ratio": 0.25}),
    ("POST", "/rings/replay_buffer/enable", None),
    ("POST", "/predict", {"inputs": [[1.0, 2.0, 3.0, 4.0]]}),
)


def main() -> int:
    parser = parser_of(__doc__, seed=False)
    parser.add_argument("--batches", type=int, default=DAY)
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds, after which it is ended")
    parser.add_argument("--samples", type=Path, help="a file for all that was sampled, JSON lines")
    parser.add_argument("--look", type=float, default=0.5, help="seconds between two looks; minutes of the day")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        begun = time.monotonic()
        samples = list(_sampled(Path(name), asked.batches, asked.limit, asked.look))
        seconds = time.monotonic() - begun
    if asked.samples:
        asked.samples.write_text("".join(json.dumps(each) + "\n" for each in samples))
    if not samples:
        raise SystemExit("the run has ended before it could be looked at; let it have more batches")
    told = verdict(samples, _bare(asked.batches))
    print(json.dumps({**told, "seconds": round(seconds)}))
    return 0 if told["flat"] else 1


def _sampled(folder: Path, batches: int, limit: float, look: float) -> Iterator[dict[str, int]]:
    target, deadline = Target(free_port(), secrets.token_urlsafe()), time.monotonic() + limit
    os.environ["ONION_TOKEN"] = target.token
    with ExitStack() as ends:
        producer = python("scripts.soak.producer", folder)
        ends.callback(producer.end)
        trainer = python("scripts.soak.trainer", folder, batches, target.port)
        ends.callback(trainer.end)
        commands = cycle(COMMANDS)
        looks = 0
        while not trainer.over and time.monotonic() < deadline:
            time.sleep(look)
            if (status := target.call("GET", "/status")) and status["state"] != "ended":
                yield from _looked(trainer, folder, status["step"])
                looks += 1
                if looks % LOOKS_PER_COMMAND == 0:
                    target.call(*next(commands))


def _looked(trainer: Child, folder: Path, step: int) -> Iterator[dict[str, int]]:
    try:
        yield {"step": step, **figures(trainer.process.pid, folder)}
    except OSError:  # it has just ended
        return


def _bare(batches: int) -> list[tuple[int, int]]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "scripts.soak.trainer", "bare", str(batches)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [(step, memory) for step, memory in json.loads(done.stdout.splitlines()[-1])]


def verdict(samples: list[dict[str, int]], bare: list[tuple[int, int]]) -> dict[str, Any]:
    """Return how much each figure rises in a day, and whether it may; ``bare``: (batch, memory) of the bare loop."""
    steps = [sample["step"] for sample in samples]
    rises = {name: rise(steps, [sample[name] for sample in samples], DAY) for name in ALLOWED}
    own = rise([step for step, _ in bare], [memory for _, memory in bare], DAY)
    grown = sorted(name for name, value in rises.items() if value > ALLOWED[name])
    return {
        "batches": steps[-1],
        "samples": len(samples),
        "rises_in_a_day": {name: round(value, 1) for name, value in rises.items()},
        "memory_of_bare_paddle": round(own, 1),
        "last": {name: samples[-1][name] for name in ALLOWED},
        "grown": grown,
        "flat": not grown,
    }


if __name__ == "__main__":
    sys.exit(main())
