"""Processes that serve, and what they take of the processors."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.frame import ROOT
from benchmarks.frame.processes import THREADS
from benchmarks.serving.callers import PREDICT, Heard, Route, call
from scripts.parity.environments import python_of

TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE = 300
UNDISTURBED = {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}
"""Nothing is asked of a hub, and nobody is told that infinity was started."""


class Service:
    """A process that serves, its address and the route that it answers."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], url: str, route: Route) -> None:
        self.name, self._process, self._url, self._route = name, process, url, route

    def call(self, texts: Sequence[str], calls: int, callers: int) -> Heard:
        """Let some callers send texts; see ``callers.call``."""
        return call(self._url, self._route, texts, calls, callers)

    def processor_seconds(self) -> float:
        """Return what the process and its children have taken until now."""
        return sum(_ticks(pid) for pid in _family(self._process.pid)) / TICKS


@contextmanager
def service(name: str, command: Sequence[str], peer: str | None = None, route: Route = PREDICT) -> Iterator[Service]:
    """Start a service and wait for its health; PORT in the command is a free port."""
    python, port = sys.executable if peer is None else str(python_of(peer)), _free_port()
    environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS), **UNDISTURBED}
    words = [python, *(str(port) if word == "PORT" else word for word in command)]
    streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "start_new_session": True}
    with subprocess.Popen(words, cwd=ROOT, env=environment, **streams) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(url, process, words)
            yield Service(name, process, url, route)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # LitServe's workers outlive their parent


def _wait(url: str, process: subprocess.Popen[bytes], words: Sequence[str]) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(f"{url}/health").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise SystemExit("serving: " + " ".join(map(str, words)) + " does not serve")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _family(pid: int) -> Iterator[int]:
    yield pid
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield from _family(int(child))


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
