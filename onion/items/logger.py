"""The log of a run: one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from onion.checkpointing.checkpoint import plain
from onion.checkpointing.log_file import LogFile
from onion.engine.item import HookIterator
from onion.engine.periodic import Interval
from onion.engine.state import State
from onion.monitoring.figure_writer import FigureWriter
from onion.monitoring.records import Value
from onion.paths import anchored


class Logger(FigureWriter):
    """Write ``{"step", "pass", "seconds", "loss", <log_values>, <metrics and scalars since the last row>}`` as JSON.

    A row is one line. It is written periodically and whenever a metric was reported or a scalar recorded
    (``state.record_scalar``). Put the item outside those whose metrics it logs and inside the Saver. A resumed run
    removes the rows after the checkpoint, so none appears twice. A file that belongs to no checkpoint, or has another
    name, is renamed (``metrics-1.jsonl``), never overwritten. An inner run that shares the item, such as a test, writes
    no row.

    Args:
        path: the file; its folder is created if it is missing.
        every: steps between two rows, a ``timedelta``, or ``"pass"``. Default 100.
    """

    # Times, and the length of a file with times in it.
    transient = ("_before", "_begun", "_offset", "seconds", "offset")

    def __init__(self, path: str | Path, every: Interval = 100) -> None:
        super().__init__(every)
        self.path = anchored(path)
        self._file: LogFile | None = None
        self._begun = 0.0
        self.reset()

    def reset(self) -> None:
        """Start with a new file."""
        super().reset()
        self._offset: int | None = None
        self._before = 0.0

    def initialize(self, state: State) -> HookIterator:
        """Keep the file open during the run."""
        self.listen(state)
        self._begun = perf_counter()
        self._file = LogFile(self.path, self._offset)
        try:
            yield
        finally:
            file, self._file = self._file, None
            self._offset = file.close()

    def write(self, state: State, values: Mapping[str, Value]) -> None:
        """Write a row."""
        if self._file is not None:
            row = {"step": state.step, "pass": state.pass_id, "seconds": round(self._seconds(), 3), **values}
            self._file.write((json.dumps(row, default=plain) + "\n").encode())

    def _seconds(self) -> float:
        return self._before + perf_counter() - self._begun

    def state_dict(self) -> dict[str, Any]:
        """Return the log's name and length, after a sync, so that the log is on disk before the checkpoint."""
        if self._file is not None:
            self._offset = self._file.synced()
        file = {"file": self.path.name, "offset": self._offset}
        return {**file, **super().state_dict(), "seconds": self._seconds()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue after the rows before the checkpoint."""
        super().load_state_dict(saved)
        # Loggers come and go between runs and take each other's item names; a length belongs to one file.
        ours = saved.get("file", self.path.name) == self.path.name
        self._offset = None if saved["offset"] is None or not ours else int(saved["offset"])
        self._before = float(saved["seconds"])
