"""Means over seeds with their intervals, and differences of pairs of the same seed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
"""Degrees of freedom -> the 97.5 % point of Student's t."""

Seeds = Mapping[int, float]
"""Seed -> a figure."""


@dataclass(frozen=True)
class Interval:
    """A mean, and half of its 95 % interval by Student's t; None: a single value has none."""

    mean: float
    half: float | None
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Interval:
        """Return the interval of at least one value, of at most ten."""
        mean = statistics.mean(values)
        if len(values) == 1:
            return cls(mean, None, 1)
        half = STUDENT[len(values) - 1] * statistics.stdev(values) / math.sqrt(len(values))
        return cls(mean, half, len(values))

    @property
    def tells(self) -> bool:
        """Whether 0 lies outside."""
        return self.half is not None and abs(self.mean) > self.half

    def text(self, sign: str = "", digits: int = 1) -> str:
        """Return it as text; ``sign`` is ``"+"`` for differences."""
        half = "" if self.half is None else f" ± {self.half:.{digits}f}"
        return f"{round(self.mean, digits) + 0.0:{sign}.{digits}f}{half}"  # + 0.0: no "-0.0"


def paired(ours: Seeds, theirs: Seeds) -> Interval | None:
    """Return the interval of the differences, seed by seed; None: they have no seed in common."""
    differences = [ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())]
    return Interval.of(differences) if differences else None
