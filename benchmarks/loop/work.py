"""The work that is the same for all: batches, a Linear(8, 1), a clock in it. It needs numpy only: see side.py."""

from __future__ import annotations

from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Example: TypeAlias = tuple[Floats, Floats]
"""A batch: x [32, 8], y [32, 1]."""
Parameters: TypeAlias = list[Floats]
"""The weight, flat, and the bias."""

BATCH, INPUTS = 32, 8
RATE = 0.01
"""Of plain SGD."""
CLOSE = 1e-6
"""By which parameters may differ that count as the same."""

CALLS: list[float] = []
"""When the network was called, in seconds."""


def note_call() -> None:
    """Note that the network is called; the networks of engines and of bare loops do this alike."""
    CALLS.append(perf_counter())


def seconds_between(batches: int) -> float:
    """Return the mean time from one of the last so many calls to the next, and forget them."""
    first, last = CALLS[-batches], CALLS[-1]
    CALLS.clear()
    return (last - first) / (batches - 1)


def examples(count: int) -> list[Example]:
    """Return so many batches of a noisy line, always the same."""
    random = np.random.default_rng(0)
    slope = random.normal(size=(INPUTS, 1))
    x = random.normal(size=(count, BATCH, INPUTS))
    y = x @ slope + 0.1 * random.normal(size=(count, BATCH, 1))
    return list(zip(x.astype("float32"), y.astype("float32"), strict=True))


def first_weight() -> Floats:
    """Return the weight [8, 1] that every network begins with; its bias begins at 0."""
    return np.random.default_rng(1).normal(size=(INPUTS, 1)).astype("float32")


def taken(weight: Any, bias: Any) -> Parameters:
    """Return a network's parameters, from whatever numpy can read."""
    return [np.array(weight, "float32").ravel(), np.array(bias, "float32").ravel()]


def difference(one: Parameters, other: Parameters) -> float:
    """Return the largest difference of any parameter."""
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))
