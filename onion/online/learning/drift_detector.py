"""`DriftDetector`: notices that the data have changed, and calls a function."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from math import isfinite
from typing import Any, Literal, TypeAlias

import numpy as np

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError, OnionError
from onion.validation import is_lazy, is_number, is_whole

log = logging.getLogger("onion")

Figure: TypeAlias = Callable[[State], Any]
"""The state on the way out of a batch -> what is watched: a number, an array ``[n]`` of them, or None for none."""


def loss(state: State) -> float | None:
    """Read the loss of the batch; this waits for the device."""
    return None if state.loss is None else float(state.loss)


class DriftDetector(RunnerItem):
    """Call a function when a figure has changed, as ADWIN detects it (Bifet and Gavalda 2007); extra ``[drift]``.

        test = ProgressiveValidation(network)
        raised = LearningRateBoost(updater, times=5, steps=200)
        watch = DriftDetector(raised.begin, test.of("accuracy"), change="down")
        Runner(..., StreamProvider(spool), test, watch, raised, updater, GradientMachine(network))

        DriftDetector(lambda state: mailbox.post(saver.save))      # save before the next batch when the loss has risen

    ADWIN keeps a window of the latest figures, and looks at each that comes, on the way out of a batch, whether the
    older part of the window has another mean than the newer part. If so, ``<name>.changes``, how many there were so
    far, is reported, and the window starts again. It is the ADWIN of the library river. Its bounds are for figures from
    0 to 1: of larger ones, as losses, chance is taken for a change more often. The more figures, the sooner: a figure
    for each sample shows within a few batches what their means show within dozens.

    A checkpoint holds the figures of the window, from which a resumed run rebuilds the same ADWIN; no state of river's
    own is saved. So the window is bounded: when it has ``longest`` figures, its older half goes.

    Args:
        act: called with the state, in the thread of the run, on the way out of a batch.
        figure: what is watched, a function of the state that gives a number, an array ``[n]`` of them, or None. What
            is not finite is passed over. Default: the loss, which waits for the device every batch; what a
            ProgressiveValidation has measured (``test.of("accuracy")``) is there already.
        delta: how probable it is at most that chance is taken for a change. Default 0.002, river's.
        change: which changes count: ``up`` (default; for errors and losses), ``down``, ``both``. Others only end the
            window.
        longest: of the window, in figures. Default 20,000.

    Raises:
        CompositionError: an argument is out of its range, or a function is a coroutine or generator function.
        OnionError: river is not installed.
    """

    keep_for_inference = False
    transient = ("_adwin",)  # rebuilt from the figures

    def __init__(
        self,
        act: Callable[[State], object],
        figure: Figure = loss,
        *,
        delta: float = 0.002,
        change: Literal["up", "down", "both"] = "up",
        longest: int = 20_000,
    ) -> None:
        _check_arguments(act, figure, delta, change, longest)
        self.act, self.figure, self.delta, self.change, self.longest = act, figure, delta, change, longest
        self.reset()

    def reset(self) -> None:
        """Begin with an empty window."""
        self._begin([])

    def _begin(self, figures: list[float]) -> None:
        """Begin a window of these figures."""
        self._figures, self._adwin, self._changes = figures, adwin(self.delta), 0
        for figure in figures:
            self._adwin.update(figure)

    def on_batch(self, state: State) -> HookIterator:
        """Look at the figures of the batch."""
        yield
        given = self.figure(state)
        for figure in [] if given is None else np.atleast_1d(np.asarray(given, np.float64)):
            if isfinite(figure):
                self._look(state, float(figure))

    def _look(self, state: State, figure: float) -> None:
        self._adwin.update(figure)
        self._figures.append(figure)
        if self._adwin.drift_detected:
            self._changed(state)
        elif len(self._figures) >= self.longest:
            self._rebegin(self._figures[-(self.longest // 2) :])

    def _rebegin(self, figures: list[float]) -> None:
        changes = self._changes
        self._begin(figures)
        self._changes = changes

    def _changed(self, state: State) -> None:
        went = self._direction()
        self._rebegin([])
        if self.change not in (went, "both"):
            return
        self._changes += 1
        log.info("%s: at step %d the figure has gone %s", self.name, state.step, went)
        state.report({f"{self.name}.changes": self._changes})
        self.act(state)

    def _direction(self) -> str:
        """Return whether what ADWIN has kept of the window is above what it has dropped."""
        newer = int(self._adwin.width)
        return "up" if np.mean(self._figures[-newer:]) > np.mean(self._figures[:-newer]) else "down"

    def state_dict(self) -> dict[str, Any]:
        """Return the figures of the window, and how often it has acted."""
        return {"figures": np.array(self._figures, np.float64), "changes": self._changes}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Make the same window of them."""
        self._begin(saved["figures"].tolist())
        self._changes = int(saved["changes"])


def adwin(delta: float) -> Any:
    """Return river's ADWIN that looks at every figure.

    Raises:
        OnionError: river is not installed.
    """
    try:
        river = import_module("river.drift")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "river":
            raise
        raise OnionError("DriftDetector needs the library river: pip install 'onion-paddle[drift]'.") from None
    return river.ADWIN(delta=delta, clock=1)


def _check_arguments(act: object, figure: object, delta: object, change: object, longest: object) -> None:
    for function in (act, figure):
        if is_lazy(function) or not callable(function):
            raise CompositionError(
                f"DriftDetector: act and figure must be plain functions of the state, got {function!r}."
            )
    if not (is_number(delta) and 0 < delta < 1):
        raise CompositionError(f"DriftDetector: delta must be between 0 and 1, got {delta!r}.")
    if change not in ("up", "down", "both"):
        raise CompositionError(f"DriftDetector: change must be 'up', 'down' or 'both', got {change!r}.")
    if not (is_whole(longest) and longest >= 100):
        raise CompositionError(f"DriftDetector: longest must be an integer >= 100, got {longest!r}.")
