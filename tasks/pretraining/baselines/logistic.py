"""Logistic regression on a few numbers: what counting tells about a label of two classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STEPS = 20
"""Newton's method has converged by then."""


def logistic_accuracy(
    train: NDArray[np.float64],
    labels: NDArray[np.integer],
    held_out: NDArray[np.float64],
    held_out_labels: NDArray[np.integer],
) -> float:
    """Return the accuracy on held-out examples of a logistic regression, with an L2 penalty of weight 1.

    Args:
        train: what is known of the training examples, ``[n, numbers]``.
        labels: 0 or 1, ``[n]``.
        held_out: what is known of the examples to be right about, ``[m, numbers]``.
        held_out_labels: 0 or 1, ``[m]``.
    """
    mean, spread = train.mean(axis=0), np.maximum(train.std(axis=0), 1e-12)
    known, unknown = (np.column_stack([np.ones(len(each)), (each - mean) / spread]) for each in (train, held_out))
    weights = np.zeros(known.shape[1])
    penalty = np.diag([1e-6, *[1.0] * train.shape[1]])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(known @ weights, -30, 30)))
        slope = known.T @ (chance - labels) + penalty @ weights
        curvature = (known * (chance * (1 - chance))[:, None]).T @ known + penalty
        weights -= np.linalg.solve(curvature, slope)
    return float(((unknown @ weights > 0) == (held_out_labels == 1)).mean())
