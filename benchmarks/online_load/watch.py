"""The clock of a run, and the client that works while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks.online_load.company import Company
from onion import RunnerItem, State
from onion.engine.item import HookIterator


class Watch(RunnerItem):
    """Note when batches end; have the client work while they count. It stands inside the ControlServer.

    Args:
        words: what the client does; none: there is no client.
        spool: the run's.
        token: of the service.
        warm: batches before the clock starts.
        steps: batches that count. Those behind let the client come to its end.
    """

    def __init__(self, words: Sequence[str], spool: Path, token: str, warm: int, steps: int) -> None:
        self.words, self.spool, self.warm, self.steps = words, spool, warm, steps
        self._token = token
        self._company: Company | None = None
        self._ends: list[float] = []
        self._cpu: list[float] = []
        self.told: dict[str, Any] | None = None
        """What the client told; None: there was none."""

    def on_pass(self, state: State) -> HookIterator:
        """Start the client, which gets ready while the first batches are trained on; hear it after the last."""
        if self.words:
            assert state.runner is not None
            self._company = Company(self.words, self.spool, str(state.runner["control_server"].url), self._token)
        try:
            yield
            self.told = None if self._company is None else self._company.told()
        finally:
            if self._company is not None:
                self._company.stop()

    def on_batch(self, state: State) -> HookIterator:
        """Look at the clock, after each batch that counts and the one before them."""
        yield
        if state.step == self.warm and self._company is not None:
            self._company.begin()
        if self.warm <= state.step <= self.warm + self.steps:
            self._ends.append(perf_counter())
            self._cpu.append(process_time())
        if state.step == self.warm + self.steps and self._company is not None:
            self._company.end()

    def batches(self) -> list[float]:
        """Return the seconds of each batch that counts, from the end of the one before."""
        return [end - begin for begin, end in pairwise(self._ends)]

    def processor(self) -> float:
        """Return the seconds of processors that the process has taken for these batches, in all its threads."""
        return self._cpu[-1] - self._cpu[0]
