"""The best value of a metric so far."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from onion.engine.state import State

Mode: TypeAlias = Literal["max", "min"]

log = logging.getLogger("onion")


@attrs.define
class Best:
    """The best value of a metric so far.

    Attributes:
        metric: its name in ``state.metrics``.
        mode: whether more (``max``) or less (``min``) is better.
        value: the best so far; None before the first.
        step: the step of the best.
        seen: the step of the newest value that was looked at.
        count: the number of values that were looked at.
        alike: whether they were all the same.
    """

    metric: str
    mode: Mode = "max"
    value: float | None = None
    step: int = 0
    seen: int = -1
    count: int = 0
    alike: bool = True
    _told: bool = attrs.field(default=False, init=False)

    def fresh(self, state: State) -> bool:
        """Tell whether there is a value that was not looked at, and look at it."""
        reported = state.reported.get(self.metric, -1)
        if reported <= self.seen:
            return False
        self.seen = reported
        value = state.metrics[self.metric]
        same = value == self.value or (value != value and self.value is None)  # NaN is never the best
        self.alike, self.count = self.alike and (self.count == 0 or same), self.count + 1
        return True

    def better(self, state: State, by: float = 0.0) -> bool:
        """Tell whether the current value beats the best by more than ``by``; then it is the best. NaN never does."""
        value = state.metrics[self.metric]
        sign = 1 if self.mode == "max" else -1
        better = value == value and (self.value is None or sign * (value - self.value) > by)
        if better:
            self.value, self.step = value, state.reported[self.metric]
        return better

    def tell_if_missing(self, state: State, owner: str) -> None:
        """Warn, once, where figures were reported and this one was not; ``owner`` is the item that waits for it."""
        if self.seen < 0 and self.metric not in state.reported and state.reported and not self._told:
            self._told = True
            log.warning("%s: nothing has reported %r; there is %s", owner, self.metric, ", ".join(state.reported))

    def tell_if_undecided(self, state: State, owner: str) -> None:
        """Warn, at the end of a run, where the values do not distinguish checkpoints.

        That is where all are equal, or the only one is 0 and more is better; ``owner`` is the item that keeps the best.
        """
        if not self.alike or self.count == 0 or (self.count == 1 and not (self.value == 0 and self.mode == "max")):
            return
        times = "at the only test" if self.count == 1 else f"at each of {self.count} tests"
        others = ", ".join(name for name in state.reported if name != self.metric)
        if self.value is None:
            kept = f"nan {times}, so there is no best checkpoint"
        else:
            kept = f"{self.value:.4g} {times}, so the best checkpoint is the first, of step {self.step}, and no better"
        log.warning(
            "%s: %s was %s; look whether that is the figure that was meant%s, whether the labels of the test are those "
            "of the training, and whether the loss falls",
            owner,
            self.metric,
            kept,
            f" (there is {others})" if others else "",
        )

    def state_dict(self) -> dict[str, Any]:
        """Return what changes, as JSON scalars."""
        tests = {"count": self.count, "alike": self.alike}
        return {"best": self.value, "best_step": self.step, "seen": self.seen, **tests}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore it."""
        best = saved["best"]
        self.value = None if best is None else float(best)
        self.step, self.seen = int(saved["best_step"]), int(saved["seen"])
        # Older checkpoints do not have these; then there is no warning.
        self.count, self.alike = int(saved.get("count", 0)), bool(saved.get("alike", False))
