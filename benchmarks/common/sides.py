"""Sides of a comparison: processes that take turns, each in its own environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.common.processes import ROOT, FailedError, end_of
from onion.host.math_library import SPINNING, VARIABLE
from scripts.comparison.environments import python_of

Answer = dict[str, Any]
THREADS = 2


class Side:
    """A process that is ready, and waits until it is asked; while it waits it computes nothing.

    Args:
        name: as tables tell it.
        module: that is run; it calls ``benchmarks.common.worker.serve``.
        job: what it prepares, as JSON values.
        peer: whose environment it runs in (``scripts/references/requirements-PEER.txt``). Default: this one.
        environment: further variables; ``OMP_NUM_THREADS`` is ``THREADS`` unless it stands here.
    """

    def __init__(
        self, name: str, module: str, job: Any, peer: str | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.last: Answer = {}
        """What it told at its end: ``peak_bytes`` of memory, ``versions`` of libraries."""
        self._log = tempfile.NamedTemporaryFile(prefix="side-", suffix=".log")  # noqa: SIM115 - closed in end()
        python = sys.executable if peer is None else str(python_of(peer))
        self._process = subprocess.Popen(
            [python, "-m", module],
            cwd=ROOT,
            env={**_inherited(peer), "OMP_NUM_THREADS": str(THREADS), **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._send(job)

    def ready(self) -> None:
        """Wait until it is prepared.

        Raises:
            FailedError: it ended instead; the message has its last lines.
        """
        self._answer()

    def round(self, **asked: Any) -> Answer:
        """Let it do a round of work, and return what it tells of that.

        Raises:
            FailedError: it ended instead.
        """
        self._send(asked)
        return self._answer()

    def end(self) -> None:
        """Let it end; whatever it does, it is gone after this."""
        if self._log.closed:
            return
        try:
            with suppress(BrokenPipeError):
                self._input().close()
            self.last = json.loads(self._output().readline() or "{}")
        finally:
            self._process.kill()
            self._process.wait()
            self._output().close()
            self._log.close()

    def _send(self, asked: Any) -> None:
        try:
            self._input().write(json.dumps(asked) + "\n")
            self._input().flush()
        except BrokenPipeError:
            raise self._failed() from None

    def _answer(self) -> Answer:
        line = self._output().readline()
        if not line:
            raise self._failed()
        return dict(json.loads(line))

    def _failed(self) -> FailedError:
        return FailedError(f"{self.name}: ended with status {self._process.wait()}; {end_of(Path(self._log.name))}")

    def _input(self) -> Any:
        return self._process.stdin

    def _output(self) -> Any:
        return self._process.stdout


class Visitor:
    """A side whose process comes for a round and goes after it, where all of them together do not fit into the memory.

    Args:
        name, module, job, peer, environment: as a Side's.
    """

    def __init__(
        self, name: str, module: str, job: Any, peer: str | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.last: Answer = {}
        """What the processes told at their ends; ``peak_bytes`` is that of the largest."""
        self._come = partial(Side, name, module, job, peer, environment)

    def ready(self) -> None:
        """Do nothing: it comes when it is asked."""

    def round(self, **asked: Any) -> Answer:
        """Come, do a round of work, and go.

        Raises:
            FailedError: it ended before.
        """
        side = self._come()
        with all_ready([side]):
            answer = side.round(**asked)
        most = max(side.last["peak_bytes"], self.last.get("peak_bytes", 0))
        self.last = {**side.last, "peak_bytes": most}
        return answer

    def end(self) -> None:
        """Do nothing: it is gone."""


def _inherited(peer: str | None) -> dict[str, str]:
    """Return this process's variables; a peer has not those that importing onion sets."""
    return {name: value for name, value in os.environ.items() if peer is None or name not in (VARIABLE, SPINNING)}


@contextmanager
def all_ready(sides: Sequence[Side | Visitor]) -> Iterator[None]:
    """Wait for sides one after the other, and end them all when this is left."""
    with ExitStack() as stack:
        for side in sides:
            stack.callback(side.end)
        for side in sides:
            side.ready()
        yield
