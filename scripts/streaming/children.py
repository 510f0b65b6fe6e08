"""Processes that are killed and started again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]


class Child:
    """A process that is started as often as it dies.

    Args:
        start: Starts it.

    Attributes:
        kills: How often it was killed while it lived.
    """

    def __init__(self, start: Callable[[], subprocess.Popen[Any]]) -> None:
        self._start = start
        self.kills = 0
        self.process = start()

    @property
    def over(self) -> bool:
        """Whether it has ended by itself, and well.

        Raises:
            SystemExit: It has ended with an error.
        """
        status = self.process.poll()
        if status:
            raise SystemExit(f"{self.process.args} has ended with {status}")
        return status == 0

    def kill(self) -> None:
        """Kill it by SIGKILL, if it lives, and start it again."""
        if not self.over:
            self.process.kill()
            self.process.wait()
            self.kills += 1
            self.process = self._start()

    def start(self) -> None:
        """Start it again after it has ended by itself."""
        self.process = self._start()

    def end(self) -> None:
        """Kill it for good."""
        self.process.kill()
        self.process.wait()


def python(module: str, *arguments: object, log: Path | None = None) -> Child:
    """Start a module of this folder.

    Args:
        module: its name.
        arguments: its words.
        log: a file to which goes what it tells by standard error. Default: where ours goes.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    paths = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}

    def start() -> subprocess.Popen[Any]:
        with ExitStack() as room:
            told = None if log is None else room.enter_context(log.open("ab"))
            return subprocess.Popen(command, env=environment, stderr=told)  # noqa: S603  our own module

    return Child(start)
