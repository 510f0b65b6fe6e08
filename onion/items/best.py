"""The best value of a metric so far."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import attrs

from onion.state import State

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
    """

    metric: str
    mode: Mode = "max"
    value: float | None = None
    step: int = 0
    seen: int = -1
    _told: bool = attrs.field(default=False, init=False)

    def fresh(self, state: State) -> bool:
        """Tell whether there is a value that was not looked at, and look at it."""
        reported = state.reported.get(self.metric, -1)
        if reported <= self.seen:
            return False
        self.seen = reported
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

    def state_dict(self) -> dict[str, Any]:
        """Return what changes, as JSON scalars."""
        return {"best": self.value, "best_step": self.step, "seen": self.seen}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take it back."""
        self.value, self.step, self.seen = saved["best"], saved["best_step"], saved["seen"]
