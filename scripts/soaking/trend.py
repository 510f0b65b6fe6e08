"""A line through samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SETTLED = 0.25
"""The part of a run after which it has filled what it fills once: buffers, windows, the spool, pools of memory."""


def rise(steps: Sequence[int], values: Sequence[float], day: int) -> float:
    """Return by how much a straight line through the settled samples (least squares) rises in so many batches.

    Args:
        steps: of the samples, ascending.
        values: of the samples.
        day: batches.

    Raises:
        ValueError: there are fewer than three samples in the settled part.
    """
    settled = np.asarray(steps, float) >= SETTLED * steps[-1]
    if settled.sum() < 3:
        raise ValueError(f"{settled.sum()} samples are too few for a line; let it run for longer.")
    slope, _ = np.polyfit(np.asarray(steps, float)[settled], np.asarray(values, float)[settled], 1)
    return float(slope) * day
