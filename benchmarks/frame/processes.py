"""Sides of a comparison: processes that take turns, so that what slows the machine for a while slows all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.frame import ROOT
from onion.host.math_library import SPINNING, VARIABLE
from scripts.parity.environments import python_of

Answer = dict[str, Any]
Round = dict[str, Answer]
"""What each side answered, by its name."""
T = TypeVar("T")

THREADS = 2
LAST_LINES = 12


class FailedError(Exception):
    """A piece of work failed; the message has the last lines that it printed."""


class Side:
    """A process that is prepared and waits until it is asked; while it waits it computes nothing.

    Args:
        name: in tables.
        module: ``MODULE[:PREPARE]``, as worker.py takes it.
        job: what it prepares, as JSON values.
        peer: whose environment it runs in (``scripts/reference_outputs/requirements-PEER.txt``). Default: this one.
        environment: further variables; ``OMP_NUM_THREADS`` is ``THREADS`` unless given here.
        stays: whether the process lives for all rounds, or one for each round where all do not fit into the memory.

    Attributes:
        last: its last answer: ``peak_bytes`` of memory (the largest of all its processes), ``versions``.
    """

    def __init__(
        self,
        name: str,
        module: str,
        job: Any,
        peer: str | None = None,
        environment: Mapping[str, str] | None = None,
        stays: bool = True,
    ) -> None:
        self.name, self.stays = name, stays
        self.last: Answer = {}
        self._job = job
        python = sys.executable if peer is None else str(python_of(peer))
        self._command = [python, "-m", "benchmarks.frame.worker", module]
        self._environment = {**_inherited(peer), "OMP_NUM_THREADS": str(THREADS), **(environment or {})}
        self._process: subprocess.Popen[str] | None = None
        if stays:
            self._start()

    def ready(self) -> None:
        """Wait until it is prepared; FailedError if it ended instead."""
        if self.stays:
            self._answer()

    def round(self, **asked: Any) -> Answer:
        """Let it do a round of work and return its answer; FailedError if it ended instead."""
        if self.stays:
            return self._asked(asked)
        self._start()
        try:
            self._answer()
            return self._asked(asked)
        finally:
            self._end()

    def end(self) -> None:
        if self._process is not None:
            self._end()

    def _start(self) -> None:
        self._log = tempfile.NamedTemporaryFile(prefix="side-", suffix=".log")  # noqa: SIM115 - closed in _end()
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._log}
        self._process = subprocess.Popen(self._command, cwd=ROOT, env=self._environment, text=True, **pipes)
        self._send(self._job)

    def _end(self) -> None:
        process, self._process = self._process, None
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with suppress(BrokenPipeError):
                process.stdin.close()
            last = json.loads(process.stdout.readline() or "{}")
            peaks = [each["peak_bytes"] for each in (last, self.last) if "peak_bytes" in each]
            self.last = {**last, **({"peak_bytes": max(peaks)} if peaks else {})}
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            self._log.close()

    def _asked(self, asked: Answer) -> Answer:
        self._send(asked)
        return self._answer()

    def _send(self, asked: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed() from None

    def _answer(self) -> Answer:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._failed()
        return dict(json.loads(line))

    def _failed(self) -> FailedError:
        assert self._process is not None
        return FailedError(f"{self.name}: ended with status {self._process.wait()}; {end_of(Path(self._log.name))}")


def _inherited(peer: str | None) -> dict[str, str]:
    """Return this process's variables; a peer does not get those that importing onion sets."""
    return {name: value for name, value in os.environ.items() if peer is None or name not in (VARIABLE, SPINNING)}


@contextmanager
def all_ready(sides: Sequence[Side]) -> Iterator[None]:
    with ExitStack() as stack:
        for side in sides:
            stack.callback(side.end)
        for side in sides:
            side.ready()
        yield


def turned(sides: Sequence[T], turn: int) -> list[T]:
    """Return sides in the order of a round: who begins changes with each round."""
    begin = turn % len(sides)
    return [*sides[begin:], *sides[:begin]]


def alternate(sides: Sequence[Side], rounds: int, **asked: Any) -> list[Round]:
    """Ask all sides in every round; FailedError if one ended."""
    return [{side.name: side.round(**asked) for side in turned(sides, turn)} for turn in range(rounds)]


def values(rounds: Sequence[Round], side: str, figure: str) -> list[float]:
    return [float(each[side][figure]) for each in rounds]


def ratios(rounds: Sequence[Round], of: str, to: str, figure: str) -> list[float]:
    """Return, for each round, one side's figure divided by that of another."""
    return [each[of][figure] / each[to][figure] for each in rounds]


def run_logged(title: object, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    """Run a command at the top of the repository, with further variables; all output goes to the log.

    Raises:
        FailedError: it ended with another status than 0; the message begins with the title.
    """
    with log.open("wb") as file:
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, stdout=file, stderr=file)
    if done.returncode:
        raise FailedError(f"{title}: ended with status {done.returncode}; {end_of(log)}")


def end_of(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
    return "\n".join([f"{log} ends", *lines])
