"""The factor that keeps small gradients of 16-bit arithmetic from vanishing, and its rise and fall."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from onion.errors import CompositionError

MAX_SCALE = 2.0**127
"""The largest power of two in 32 bits; no scale grows beyond."""


@attrs.define
class LossScale:
    """A dynamic loss scale (Micikevicius et al. 2017): it shrinks where gradients overflow, and grows where they don't.

    The defaults are those of ``paddle.amp.GradScaler``. ``growth_factor=1, backoff_factor=1`` is a fixed scale.

    Attributes:
        value: the scale; what it is made with is the first. Default 65536.
        growth_factor: by how much it grows. Default 2.
        growth_interval: after how many updates in a row without an overflow. Default 2000.
        backoff_factor: by how much it shrinks. Default 0.5.
        backoff_interval: after how many overflows in a row. Default 1.
        floor: it never falls below. Default 1.
        good: updates without an overflow since the last one, or since it grew.
        bad: overflows in a row since it shrank.

    Raises:
        CompositionError: a constant is out of range.
    """

    value: float = 65536.0
    growth_factor: float = 2.0
    growth_interval: int = 2000
    backoff_factor: float = 0.5
    backoff_interval: int = 1
    floor: float = 1.0
    good: int = attrs.field(default=0, init=False)
    bad: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        wrong = {
            "growth_factor is at least 1": self.growth_factor < 1,
            "backoff_factor is more than 0 and at most 1": not 0 < self.backoff_factor <= 1,
            "growth_interval and backoff_interval are at least 1": min(self.growth_interval, self.backoff_interval) < 1,
            "floor is more than 0, value no less, and no more than 2**127": not 0
            < self.floor
            <= self.value
            <= MAX_SCALE,
        }
        for rule, broken in wrong.items():
            if broken:
                raise CompositionError(f"{self}: {rule}.")

    @classmethod
    def ernie(cls) -> LossScale:
        """Return a scale with the constants of ERNIE's scripts."""
        return cls(102400.0, growth_factor=2.0, growth_interval=100, backoff_factor=0.8, backoff_interval=2, floor=1.0)

    def update(self, finite: bool) -> None:
        """Take note of one update: whether its gradients were all finite."""
        if finite:
            self.good, self.bad = self.good + 1, 0
        else:
            self.good, self.bad = 0, self.bad + 1
        if self.good == self.growth_interval:
            self.value, self.good = min(MAX_SCALE, self.value * self.growth_factor), 0
        elif self.bad == self.backoff_interval:
            self.value, self.bad = max(self.floor, self.value * self.backoff_factor), 0

    def state_dict(self) -> dict[str, Any]:
        """Return what changes, as JSON scalars."""
        return {"scale": self.value, "good": self.good, "bad": self.bad}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take it back."""
        self.value, self.good, self.bad = float(saved["scale"]), int(saved["good"]), int(saved["bad"])
