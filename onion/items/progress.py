"""The progress of a run: a bar on a terminal or in a notebook, lines in a log."""

from __future__ import annotations

import sys
from operator import length_hint
from time import perf_counter
from typing import Any, TextIO

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.monitoring.bars import open_bar, set_total, shows_bars
from onion.monitoring.log_values import log_values, loss_of
from onion.monitoring.progress_lines import Lines, Mark
from onion.training.updates import steps_of, steps_of_differing


class Progress(RunnerItem):
    """Show pass, step, loss, metrics, learning rate, examples a second and the time left.

    On a terminal and in a notebook that is a bar a pass, and a line that tells why a run was stopped; the bar of a run
    inside another one is removed at its end.
    Elsewhere (a pipe, a file, CI, Slurm) it is whole lines: the first after 5 seconds, the next ones after 10, 20, 40
    more, then every 5 minutes, and one at the end of the run. Between two refreshes or lines it reads nothing from the
    device. In a notebook without ipywidgets the bar is text.

    Args:
        seconds: the shortest time between two refreshes of the bar. Default 0.5.
        file: where to show it. Default: standard error.
        quiet: show nothing. Default False.
        lines: lines, not a bar. Default: when ``file`` is neither a terminal nor a notebook.
    """

    keep_for_inference = False
    passive = outermost_only = first_rank_only = True
    transient = ("_bar", "_in_lines", "_lines", "_next", "_examples", "_begun", "_pass")  # what this process shows

    def __init__(
        self, seconds: float = 0.5, file: TextIO | None = None, quiet: bool = False, lines: bool | None = None
    ) -> None:
        self.seconds = seconds
        self.file = file
        self.quiet = quiet
        self.lines = lines
        self._bar: Any = None
        self._lines: Lines | None = None
        self._next = 0.0
        self._pass = ""

    def initialize(self, state: State) -> HookIterator:
        """Choose bar or lines; write the last line at the end of the run, unless it is inside another one."""
        file = self.file or sys.stderr
        self._silent = self.quiet or file is None  # a process without a console has no standard error
        self._in_lines = not self._silent and (not shows_bars(file) if self.lines is None else self.lines)
        self._lines = None
        yield
        if self._lines is not None and state.parent is None:
            told = log_values(state)
            self._lines.end(
                _mark(state, told), self._total(state, state.batch_id), self._pass, _figures(state, told), state.stopped
            )
        elif state.stopped and state.parent is None and not self._silent:  # a line, since bars are cut to their width
            print(f"stopped after step {state.step}: {state.stopped}", file=file)

    def on_pass(self, state: State) -> HookIterator:
        """Show a bar around the pass."""
        self._pass = f"pass {state.pass_id + 1}" + (f"/{state.passes_asked}" if state.passes_asked else "")
        file = self.file or sys.stderr
        if self._in_lines and self._lines is None:  # not before, where a Saver has not loaded yet
            self._lines = Lines(file, _mark(state, log_values(state)))
        if self._silent or self._in_lines:
            yield
            return
        self._next = 0.0
        desc, leave = f"pass {state.pass_id + 1}", state.parent is None
        self._bar = open_bar(file, desc=desc, initial=state.batch_id, unit=" steps", leave=leave)
        self._examples, self._begun = log_values(state).get("examples", 0.0), perf_counter()
        try:
            yield
            self._show(state, state.batch_id)
        finally:
            self._bar.close()
            self._bar = None

    def on_batch(self, state: State) -> HookIterator:
        """Refresh the bar, or write a line, if it is time."""
        yield
        if self._bar is not None and perf_counter() >= self._next:
            self._show(state, state.batch_id + 1)
            self._next = perf_counter() + self.seconds
        elif self._lines is not None and self._lines.due(perf_counter()):
            told = log_values(state)
            self._lines.under_way(
                _mark(state, told), self._total(state, state.batch_id + 1), self._pass, _figures(state, told)
            )

    def _show(self, state: State, done: int) -> None:
        told = log_values(state)
        rate = (told.get("examples", 0.0) - self._examples) / max(perf_counter() - self._begun, 1e-9)
        shown = [f"{name}={value:.4g}" for name, value in _figures(state, told).items()]
        left = _steps_left(state)
        set_total(self._bar, None if left is None else done + left)
        self._bar.set_postfix_str(" ".join([*shown, f"{rate:.0f} examples/s"]), refresh=False)
        self._bar.update(max(done - self._bar.n, 0))
        self._bar.refresh()

    def _total(self, state: State, done: int) -> int | None:
        """Return how many steps the run will have made, ``done`` being those of this pass; None: unknown."""
        left, total = _steps_left(state), state.steps_asked
        if state.passes_asked is not None and left is not None:
            planned = state.step + left + _steps_after(state, state.passes_asked, done + left)
            total = planned if total is None else min(planned, total)
        return total


def _steps_left(state: State) -> int | None:
    """Return the number of steps left in this pass; None: the data do not have a length."""
    left = length_hint(state.batches, -1)
    return None if left < 0 or state.runner is None else steps_of(left, state.runner)


def _steps_after(state: State, passes: int, now: int) -> int:
    """Return the number of steps in the passes after this one, which has ``now``, unless they are known to differ."""
    later = range(state.pass_id + 1, passes)
    differing = None if state.runner is None else steps_of_differing(later, state.runner)
    return len(later) * now if differing is None else differing


def _mark(state: State, told: dict[str, float]) -> Mark:
    return Mark(perf_counter(), state.step, told.get("examples", 0.0))


def _figures(state: State, told: dict[str, float]) -> dict[str, float]:
    """Return what is shown by name: the loss, the metrics, the items' log values."""
    shown = {**loss_of(state), **state.metrics, **told}
    shown.pop("examples", None)  # it is shown as a speed
    return shown
