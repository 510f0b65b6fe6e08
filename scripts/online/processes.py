"""Processes that are killed and started again; waiting for them; a free port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
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


def python(module: str, *arguments: object, log: Path | None = None) -> Child:
    """Start a module of this repository; ``log`` is a file for its standard error. Default: that of this process."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}

    def start() -> subprocess.Popen[Any]:
        with ExitStack() as room:
            told = None if log is None else room.enter_context(log.open("ab"))
            return subprocess.Popen(command, env=environment, stderr=told)

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
