"""The client of a run, as the run has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.processes import ROOT, FailedError


class Company:
    """A process of client.py, which begins when it is told to.

    Args:
        words: what it does.
        spool: the run's.
        url: where the run's service listens.
        token: of the service.
    """

    def __init__(self, words: Sequence[str], spool: Path, url: str, token: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.online_load.client", str(spool), url, *words],
            cwd=ROOT,
            env={**os.environ, "ONION_TOKEN": token},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self) -> None:
        """Wait until it can begin, and let it."""
        self._hear()
        self._say()

    def end(self) -> None:
        """Let it come to its end."""
        self._say()

    def told(self) -> dict[str, Any]:
        """Return what it tells at its end."""
        told: dict[str, Any] = json.loads(self._hear())
        return told

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _say(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise FailedError(f"a client ended with status {self._process.wait()} before its time")
        return line
