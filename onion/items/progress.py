"""The progress bar."""

from __future__ import annotations

import os
import sys
from operator import length_hint
from time import perf_counter
from typing import Any, TextIO

from tqdm import tqdm

from onion.item import RunnerItem, Way
from onion.items.readings import cost_of, readings
from onion.state import State


class Progress(RunnerItem):
    """Show pass, cost, metrics, learning rate, examples a second and the time left; quiet when not on a terminal.

    Between two refreshes it reads nothing from the device.

    Args:
        seconds: the shortest time between two refreshes. Default 0.5.
        file: where to show it. Default: standard error.
        quiet: show nothing; default: when ``file`` is no terminal.
    """

    predicts = False
    watches = True
    unsaved = ("_bar", "_next", "_examples", "_begun")  # what is shown of this process

    def __init__(self, seconds: float = 0.5, file: TextIO | None = None, quiet: bool | None = None) -> None:
        self.seconds = seconds
        self.file = file
        self.quiet = quiet
        self._bar: Any = None
        self._next = 0.0

    def initialize(self, state: State) -> None:
        """Look whether there is anybody to show it to."""
        file = self.file or sys.stderr
        self._silent = not file.isatty() if self.quiet is None else self.quiet

    def on_pass(self, state: State) -> Way:
        """Show a bar around the pass."""
        if self._silent:
            yield
            return
        self._next = 0.0
        file = self.file or sys.stderr
        self._bar = tqdm(
            desc=f"pass {state.pass_id + 1}", initial=state.batch_id, unit=" batches", file=file, **_size_of(file)
        )
        self._examples, self._begun = readings(state).get("examples", 0.0), perf_counter()
        try:
            yield
            self._show(state, state.batch_id)
        finally:
            self._bar.close()
            self._bar = None

    def on_batch(self, state: State) -> Way:
        """Refresh the bar if it is time."""
        yield
        if self._bar is not None and perf_counter() >= self._next:
            self._show(state, state.batch_id + 1)
            self._next = perf_counter() + self.seconds

    def _show(self, state: State, done: int) -> None:
        told = readings(state)
        rate = (told.pop("examples", 0.0) - self._examples) / max(perf_counter() - self._begun, 1e-9)
        shown = [f"{name}={value:.4g}" for name, value in {**cost_of(state), **state.metrics, **told}.items()]
        left = length_hint(state.batches, 0)
        self._bar.total = done + left if left or self._bar.total else None
        self._bar.set_postfix_str(" ".join([*shown, f"{rate:.0f} examples/s"]), refresh=False)
        self._bar.update(max(done - self._bar.n, 0))
        self._bar.refresh()


def _size_of(file: TextIO) -> dict[str, int]:
    """Return a size for a terminal that tells none (some containers'), on which tqdm would show an empty line."""
    try:
        columns, lines = os.get_terminal_size(file.fileno())
    except (OSError, ValueError):
        return {}
    return {} if columns and lines else {"ncols": 120, "nrows": 24}
