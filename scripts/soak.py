"""Learn from a stream for a day, a batch a second, as fast as it goes: whatever would grow for ever shows in the end.

    python scripts/soak.py --batches 86400 --limit 1200

A tiny network learns through all of it: a Spool that a producer keeps filled, StreamProvider, Journal, ControlServer
with a client that asks and now and then commands, Saver, Logger, ProgressiveValidation, ReplayBuffer in a Switch,
MovingAverage and Publish. The client samples memory, threads, open files, and the sizes of files. A straight line
through the samples of the last three quarters tells by how much each rises in a day. Beside it the same network is
trained in a bare loop of Paddle's: its memory grows by itself (3.3.1 keeps a list of every ``paddle.to_tensor``), and
is told for comparison. One line of JSON; exit status 1 if something rises by more than it may, which ALLOWED tells.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

from abusing.target import Target
from soaking.samples import figures
from soaking.trend import rise
from streaming.children import Child, python

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

COMMAND = 8
"""Looks between two commands."""

ONES = (
    ("PATCH", "/settings", {"parameter_updater.learning_rate": 0.002}),
    ("POST", "/rings/replay_buffer/disable", None),
    ("POST", "/save", None),
    ("PATCH", "/settings", {"replay_buffer.ratio": 0.25}),
    ("POST", "/rings/replay_buffer/enable", None),
    ("POST", "/predict", {"inputs": [[1.0, 2.0, 3.0, 4.0]]}),
)


def main() -> int:
    """Do it; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=DAY)
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds, after which it is ended where it stands")
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
    """Run it; give what is sampled, with the step."""
    target, deadline = Target(_free_port(), secrets.token_urlsafe()), time.monotonic() + limit
    os.environ["ONION_TOKEN"] = target.token
    with ExitStack() as ends:
        producer = python("soaking.producer", folder)
        ends.callback(producer.end)
        trainer = python("soaking.trainer", folder, batches, target.port)
        ends.callback(trainer.end)
        commands = cycle(ONES)
        looks = 0
        while not trainer.over and time.monotonic() < deadline:
            time.sleep(look)
            if (status := target.call("GET", "/status")) and status["state"] != "ended":
                yield from _looked(trainer, folder, status["step"])
                looks += 1
                if looks % COMMAND == 0:
                    target.call(*next(commands))


def _looked(trainer: Child, folder: Path, step: int) -> Iterator[dict[str, int]]:
    try:
        yield {"step": step, **figures(trainer.process.pid, folder)}
    except OSError:  # it has just ended
        return


def _bare(batches: int) -> list[tuple[int, int]]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "soaking.trainer", "bare", str(batches)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    return [(step, memory) for step, memory in json.loads(done.stdout.splitlines()[-1])]


def verdict(samples: list[dict[str, int]], bare: list[tuple[int, int]]) -> dict[str, Any]:
    """Tell by how much each figure rises in a day, and whether that is no more than it may.

    Args:
        samples: with ``step`` and the figures of ALLOWED.
        bare: (batch, memory) of the bare loop.
    """
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


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
