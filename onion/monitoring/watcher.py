"""The base of items that act on each new value of a metric."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError
from onion.monitoring.best import Best, Mode

if TYPE_CHECKING:
    from onion.engine.runner import Runner

log = logging.getLogger("onion")


class Watcher(RunnerItem):
    """Call ``see`` for each new value of a metric. Put it outside the item that reports the metric.

    Args:
        monitor: a name in ``state.metrics``, such as ``tester.accuracy``.
        mode: ``max`` (default) or ``min``.

    Attributes:
        best: the best value and the number of values so far.

    Raises:
        CompositionError: an argument is none of these; or the item is inside the one that reports the metric, as far as
            the metric's name shows.
    """

    keep_for_inference = False
    transient: tuple[str, ...] = ("_warned",)

    def __init__(self, monitor: str, mode: Mode = "max") -> None:
        kind = type(self).__name__
        if not isinstance(monitor, str) or not monitor:
            raise CompositionError(
                f"{kind}: monitor must be a metric's name such as 'tester.accuracy', got {monitor!r}."
            )
        if mode not in ("max", "min"):
            raise CompositionError(f"{kind}: mode must be 'max' or 'min', got {mode!r}.")
        self.monitor, self.mode = monitor, mode
        self._warned = False
        Watcher.reset(self)

    def reset(self) -> None:
        """Start without a value; a subclass with a state calls this too."""
        self.best = Best(self.monitor, self.mode)

    def see(self, state: State) -> None:
        """Act on a new value, ``state.metrics[self.monitor]``; override this."""

    def check(self, runner: Runner) -> None:
        """Refuse a place inside the item that reports the metric, which its name (``tester.``) identifies."""
        for other in runner.around(self):
            if other.reports and self.monitor.startswith(f"{other.name}."):
                raise CompositionError(
                    f"{self.name} is inside {other.name}, which reports {self.monitor} after it, so it would stop "
                    "a step late; move it further out (before it)."
                )

    def on_pass(self, state: State) -> HookIterator:
        """Look at what was reported on the way out of the pass."""
        yield
        self._look(state)
        self.best.tell_if_missing(state, self.name)

    def on_batch(self, state: State) -> HookIterator:
        """Look at what was reported during the batch."""
        yield
        self._look(state)

    def _look(self, state: State) -> None:
        if self.best.fresh(state):
            self._warn_if_late(state)
            self.see(state)

    def _warn_if_late(self, state: State) -> None:
        """Warn once if the metric is from an earlier step, which means it was reported after this ring had left."""
        reported = state.reported[self.monitor]
        if reported < state.step and not self._warned:
            self._warned = True
            log.warning(
                "%s: %s was reported at step %d and seen at step %d; put %s outside the item that reports it, or it "
                "stops late", self.name, self.monitor, reported, state.step, self.name,
            )  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """Return the best value and the number of values."""
        return self.best.state_dict()

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore them."""
        self.best.load_state_dict(saved)
