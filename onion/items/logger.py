"""The log of a run: one JSON object per line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import IO, Any

from onion.checkpointing.atomic_files import sync, write
from onion.checkpointing.checkpoint import plain
from onion.engine.item import HookIterator
from onion.engine.periodic import Interval, Periodic
from onion.engine.placement import OUTSIDE_REPORTS, UNREPEATED
from onion.engine.state import State
from onion.errors import CheckpointError
from onion.monitoring.log_values import log_values, loss_of
from onion.paths import anchored


class Logger(Periodic):
    """Write ``{"step", "pass", "seconds", "loss", <log_values>, <metrics reported since the last row>}`` as JSON lines.

    A row is written periodically and whenever a metric was reported. Put the item outside those whose metrics it logs
    and inside the Saver. A resumed run removes the rows after the checkpoint, so none appears twice. A file that
    belongs to no checkpoint, or has another name, is renamed (``metrics-1.jsonl``), never overwritten. An inner run
    that shares the item, such as a test, writes no row.

    Args:
        path: the file; its folder is created if it is missing.
        every: steps between two rows, a ``timedelta``, or ``"pass"``. Default 100.
    """

    passive = outermost_only = True
    place_rules = (UNREPEATED, OUTSIDE_REPORTS)
    # Times, and the length of a file with times in it.
    transient = ("_before", "_begun", "_offset", "seconds", "offset")

    def __init__(self, path: str | Path, every: Interval = 100) -> None:
        super().__init__(every)
        self.path = anchored(path)
        self._file: IO[bytes] | None = None
        self._begun = 0.0
        self.reset()

    def reset(self) -> None:
        """Start with a new file."""
        super().reset()
        self._offset: int | None = None
        self._logged: dict[str, int] = {}
        self._before = 0.0

    def initialize(self, state: State) -> HookIterator:
        """Keep the file open during the run."""
        self._begun = perf_counter()
        self._file = self._open()
        try:
            yield
        finally:
            file, self._file = self._file, None
            with self._writing(), file:
                self._offset = self._synced(file)

    def _open(self) -> IO[bytes]:
        with self._writing():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            size = self.path.stat().st_size if self.path.exists() else 0
            if self._offset is None and size:
                self.path.rename(_free_name(self.path))
            elif self._offset is not None and size > self._offset:
                os.truncate(self.path, self._offset)
            return self.path.open("ab")

    def on_pass(self, state: State) -> HookIterator:
        """Write a row if the period is a pass or metrics were reported on its way out."""
        yield
        if self._news(state) or (self.every == "pass" and not state.pass_cut):
            self.act(state)

    def on_batch(self, state: State) -> HookIterator:
        """Write a row if the batch completes a period or metrics were reported."""
        yield
        if self.due(state) or (state.reported and self._news(state)):
            self.act(state)

    def _news(self, state: State) -> list[str]:
        logged = self._logged
        return [name for name, step in state.reported.items() if step > logged.get(name, -1)]

    def act(self, state: State) -> None:
        """Write a row."""
        news = {name: state.metrics[name] for name in self._news(state)}
        self._logged.update({name: state.reported[name] for name in news})
        row = {"step": state.step, "pass": state.pass_id, "seconds": round(self._seconds(), 3)}
        self._write({**row, **loss_of(state), **log_values(state), **news})

    def _seconds(self) -> float:
        return self._before + perf_counter() - self._begun

    def _write(self, row: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        with self._writing():
            write(self._file, (json.dumps(row, default=plain) + "\n").encode())
            self._file.flush()

    def state_dict(self) -> dict[str, Any]:
        """Return the log's name and length, after a sync, so that the log is on disk before the checkpoint."""
        if self._file is not None:
            self._offset = self._synced(self._file)
        file = {"file": self.path.name, "offset": self._offset}
        return {**file, "logged": json.dumps(self._logged), "seconds": self._seconds()}

    def _synced(self, file: IO[bytes]) -> int:
        """Sync the file to disk; return the length of the log."""
        with self._writing():
            sync(file)
            return file.tell()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Raise CheckpointError for an error of the disk."""
        try:
            yield
        except OSError as error:
            raise CheckpointError(f"cannot write the log {self.path}: {error.strerror}.") from error

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue after the rows before the checkpoint."""
        # Loggers come and go between runs and take each other's item names; a length belongs to one file.
        ours = saved.get("file", self.path.name) == self.path.name
        self._offset = None if saved["offset"] is None or not ours else int(saved["offset"])
        self._logged, self._before = dict(json.loads(saved["logged"])), float(saved["seconds"])


def _free_name(path: Path) -> Path:
    number = 1
    while (other := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    return other
