"""Processes that are killed and started again; waiting for them; a free port."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Child:
    """A process that is started again after each kill.

    Attributes:
        kills: How often it was killed while it was running.
    """

    def __init__(self, start: Callable[[], subprocess.Popen[Any]]) -> None:
        self._start = start
        self.kills = 0
        self.process = start()

    @property
    def over(self) -> bool:
        """Whether it has ended successfully; raise SystemExit if it has ended with an error."""
        status = self.process.poll()
        if status:
            raise SystemExit(f"{self.process.args!r} has ended with {status}")
        return status == 0

    def kill(self) -> None:
        """Kill it by SIGKILL, if it is running, and start it again."""
        if not self.over:
            self.process.kill()
            self.process.wait()
            self.kills += 1
            self.process = self._start()

    def start(self) -> None:
        """Start it again after it has ended by itself."""
        self.process = self._start()

    def end(self) -> None:
        """Kill it without starting it again."""
        self.process.kill()
        self.process.wait()


LAUNCHER = 20.0
"""Seconds for ranks to end by themselves after another one was killed."""


class Ranks:
    """A training in several processes, of which one is killed; then the others end by themselves, and all start again.

    Args:
        module: of this repository.
        arguments: of it.
        processes: how many there are at most; each start has 1, 2, 4, ... of them.
        draw: draws how many, and who is killed.
        log: a file for what they print.

    Attributes:
        kills: How often one of them was killed while it was running.
        killed: How often each rank was.
        left: How many of the others had to be killed too, as a launcher does: Paddle waits a quarter of an hour for a
            rank that was killed before it had met the others.
    """

    def __init__(
        self, module: str, arguments: Sequence[object], processes: int, draw: random.Random, log: Path
    ) -> None:
        self._log = log
        self._command = [sys.executable, "-m", module, *map(str, arguments)]
        self._counts = [count for count in (1, 2, 4, 8) if count <= processes]
        self._draw = draw
        self.killed = Counter[int]()
        self.kills = self.left = 0
        self._start(processes)

    def _start(self, count: int) -> None:
        places = [f"127.0.0.1:{free_port()}" for _ in range(count + 1)]
        with self._log.open("ab") as log:
            self._processes = [
                subprocess.Popen(
                    self._command,
                    env={**environment(), **_launched(rank, places)},
                    stdout=log,
                    stderr=log,
                )
                for rank in range(count)
            ]

    @property
    def over(self) -> bool:
        """Whether all have ended successfully; raise SystemExit if one has ended with an error."""
        statuses = [process.poll() for process in self._processes]
        if failed := [f"rank {rank} with {status}" for rank, status in enumerate(statuses) if status]:
            printed = self._log.read_text(errors="replace")[-3000:]
            raise SystemExit(f"{self._command!r} has ended: {', '.join(failed)}\n{printed}")
        return all(status == 0 for status in statuses)

    def kill(self) -> None:
        """Kill a random one by SIGKILL, if all are running; wait until the others have ended, and start again."""
        if self.over:
            return
        rank = self._draw.randrange(len(self._processes))
        self._processes[rank].kill()
        self._processes[rank].wait()
        self.kills, self.killed[rank] = self.kills + 1, self.killed[rank] + 1
        for process in self._processes:
            try:
                process.wait(LAUNCHER)
            except subprocess.TimeoutExpired:
                self.left += 1
                process.kill()
                process.wait()
        self._start(self._draw.choice(self._counts))

    def end(self) -> None:
        """Kill all without starting them again."""
        for process in self._processes:
            process.kill()
            process.wait()


def _launched(rank: int, places: Sequence[str]) -> dict[str, str]:
    """Return what Paddle's launcher tells a process; the first place is that of the master, and one a process."""
    master, *ranks = places
    return {
        "PADDLE_MASTER": master,
        "PADDLE_TRAINER_ENDPOINTS": ",".join(ranks),
        "PADDLE_CURRENT_ENDPOINT": ranks[rank],
        "PADDLE_TRAINER_ID": str(rank),
        "PADDLE_TRAINERS_NUM": str(len(ranks)),
    }


def environment() -> dict[str, str]:
    """Return the environment of processes of this repository, each of a single thread."""
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}


def python(module: str, *arguments: object, log: Path | None = None) -> Child:
    """Start a module of this repository; ``log`` is a file for its standard error. Default: that of this process."""
    command = [sys.executable, "-m", module, *map(str, arguments)]

    def start() -> subprocess.Popen[Any]:
        with ExitStack() as room:
            told = None if log is None else room.enter_context(log.open("ab"))
            return subprocess.Popen(command, env=environment(), stderr=told)

    return Child(start)


PATIENCE = 600.0
"""Seconds to wait for anything. Nothing takes that long unless it hangs, however slow or busy the machine."""


def until(there: Callable[[], object]) -> None:
    """Wait until a condition holds; raise SystemExit after ten minutes."""
    if not comes(there):
        raise SystemExit(f"gave up waiting after {PATIENCE:g} s")


def comes(there: Callable[[], object]) -> bool:
    """Wait until a condition holds, for ten minutes at most; return whether it does."""
    deadline = time.monotonic() + PATIENCE
    while not there():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
