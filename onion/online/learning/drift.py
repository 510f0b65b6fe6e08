"""Drift of the data: `DriftDetector` notices it, `LearningRateBoost` learns faster for some steps."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.placement import NotInside
from onion.engine.state import State
from onion.errors import CompositionError, OnionError
from onion.validation import is_lazy, is_number, is_whole

if TYPE_CHECKING:
    from onion.engine.runner import Runner
    from onion.items.parameter_updater import ParameterUpdater

log = logging.getLogger("onion")

Figure: TypeAlias = Callable[[State], Any]
"""The state on the way out of a batch -> the figure: a number, an array ``[n]`` of them, or None for none."""


def loss(state: State) -> float | None:
    """Read the loss of the batch; this waits for the device."""
    return None if state.loss is None else float(state.loss)


class DriftDetector(RunnerItem):
    """Call a function when a figure has changed, as detected by ADWIN (Bifet and Gavalda 2007); extra ``[drift]``.

        test = ProgressiveValidation(network)
        boost = LearningRateBoost(updater, times=5, steps=200)
        detector = DriftDetector(boost.begin, test.of("accuracy"), change="down")
        Runner(..., StreamProvider(spool), test, detector, boost, updater, GradientMachine(network))

        DriftDetector(lambda state: mailbox.post(saver.save))      # save before the next batch when the loss has risen

    ADWIN keeps a window of the latest figures. With every figure, on the way out of a batch, it tests whether the older
    part of the window has another mean than the newer part. If so, ``<name>.changes``, the number of changes so far, is
    reported, and the window starts again. The implementation is that of the library river. Its bounds hold for figures
    from 0 to 1: with larger ones, such as losses, false alarms are more frequent. More figures detect a change sooner:
    one figure per sample shows it within a few batches, the means of batches within dozens.

    In several processes all watch the figures of rank 0, and call the function at the same step. The loss, and the
    values of a ProgressiveValidation, are those of the whole batch there; ``state.outputs`` are those of a piece.

    A checkpoint stores the figures of the window, from which a resumed run rebuilds the same ADWIN; the state of
    river's objects is not saved. So the window is bounded: when it has ``longest`` figures, the older half is dropped.

    Args:
        act: called with the state, in the thread of the run, on the way out of a batch.
        figure: the figure to watch: a function of the state that returns a number, an array ``[n]`` of them, or None.
            Figures that are not finite are ignored. Default: the loss, which synchronizes the device in every batch;
            the results of a ProgressiveValidation (``test.of("accuracy")``) are already on the host.
        delta: upper bound of the probability of a false alarm. Default 0.002, as in river.
        change: which changes count: ``up`` (default; for errors and losses), ``down``, ``both``. Others only reset the
            window.
        longest: of the window, in figures. Default 20,000.

    Raises:
        CompositionError: an argument is out of range, or a function is a coroutine or generator function.
        OnionError: river is not installed.
    """

    keep_for_inference = False
    place_rules = (
        NotInside("runs_pieces", "runs its inside for each piece of a batch, of which there are many a step"),
    )
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
        """Start with an empty window."""
        self._begin([])

    def _begin(self, figures: list[float]) -> None:
        """Start a window with these figures."""
        self._figures, self._adwin, self._changes = figures, adwin(self.delta), 0
        for figure in figures:
            self._adwin.update(figure)

    def on_batch(self, state: State) -> HookIterator:
        """Test the figures of the batch."""
        yield
        given = self.figure(state)
        figures = [] if given is None else np.atleast_1d(np.asarray(given, np.float64)).tolist()
        if self.group is not None:
            figures = self.group.everyone({"figures": figures})[0]["figures"]
        for figure in figures:
            if isfinite(figure):
                self._look(state, figure)

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
        """Return whether the part of the window that ADWIN has kept is above the part that it has dropped."""
        newer = int(self._adwin.width)
        return "up" if np.mean(self._figures[-newer:]) > np.mean(self._figures[:-newer]) else "down"

    def state_dict(self) -> dict[str, Any]:
        """Return the figures of the window, and the number of changes."""
        return {"figures": np.array(self._figures, np.float64), "changes": self._changes}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Rebuild the window."""
        self._begin(saved["figures"].tolist())
        self._changes = int(saved["changes"])


def adwin(delta: float) -> Any:
    """Return river's ADWIN that tests every figure.

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


class LearningRateBoost(RunnerItem):
    """Multiply the learning rate for some steps when called, for example by a DriftDetector; then restore it.

        boost = LearningRateBoost(updater, times=5, steps=200)
        Runner(..., DriftDetector(boost.begin), boost, updater, GradientMachine(network))

    If it is called again while the rate is raised, the steps count again from there. A rate that is set otherwise in
    the meantime is kept. For a schedule of ``onion.schedules`` the peak is raised.

    Args:
        updater: whose learning rate.
        times: factor of the learning rate, above 0. Default 5.
        steps: duration. Default 100.

    Raises:
        CompositionError: an argument is out of range; the updater is not in this runner; or its schedule has a rate
            that cannot be set.
    """

    keep_for_inference = False

    def __init__(self, updater: ParameterUpdater, times: float = 5.0, steps: int = 100) -> None:
        if not (is_number(times) and times > 0):
            raise CompositionError(f"LearningRateBoost: times must be a number > 0, got {times!r}.")
        if not (is_whole(steps) and steps >= 1):
            raise CompositionError(f"LearningRateBoost: steps must be an integer >= 1, got {steps!r}.")
        self.updater, self.times, self.steps = updater, times, steps
        self.reset()

    def reset(self) -> None:
        """Start with the usual rate."""
        self._until: int | None = None
        self._usual = self._raised = 0.0

    def check(self, runner: Runner) -> None:
        """Require an updater of this runner whose rate can be set."""
        if not any(item is self.updater for item in runner.walk()):
            raise CompositionError(
                f"{self.name} raises the rate of an updater that is not in this runner; give it the one that is."
            )
        if not self.updater.adjustable():
            raise CompositionError(
                f"{self.name}: the schedule of {self.updater.name} sets the learning rate by itself; use one of "
                "onion.schedules, whose peak can be set."
            )

    def begin(self, state: State) -> None:
        """Raise the rate now."""
        if self._until is None:
            self._usual = self._rate()
            self._raised = self._usual * self.times
            self.updater.set_learning_rate(self._raised)
        self._until = state.step + self.steps

    def _rate(self) -> float:
        return self.updater.adjustable()["learning_rate"].get()

    def on_batch(self, state: State) -> None:
        """Restore the rate after the last step."""
        if self._until is not None and state.step >= self._until:
            if self._rate() == self._raised:
                self.updater.set_learning_rate(self._usual)
            self.reset()

    def state_dict(self) -> dict[str, Any]:
        """Return until when the rate is raised, and the two rates; the updater saves the current one."""
        return {"until": self._until, "usual": self._usual, "raised": self._raised}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the state."""
        self._until, self._usual, self._raised = saved["until"], saved["usual"], saved["raised"]
