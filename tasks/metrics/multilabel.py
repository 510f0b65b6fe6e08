"""Figures of choosing any number of labels, all from a few counts a label."""

from __future__ import annotations

from typing import Any

import numpy as np

from onion.tasks.data.labels import Labels
from onion.tasks.metrics.state import StatefulMetric


class MultiLabelMetric(StatefulMetric):
    """F1 and exact matches over probabilities ``[batch, labels]`` and ``batch["labels"]``, 0 or 1 of the same shape.

    ``f1_micro`` is the F1 of all decisions together, ``f1_macro`` the unweighted mean of the labels' F1; an F1 of what
    neither occurs nor is predicted counts as 0 (as in scikit-learn's ``zero_division=0``). ``accuracy`` is the share of
    examples all of whose labels are right and no other.

    Args:
        labels: the labels, in the order of the probabilities.
        threshold: labels with a probability over it are predicted.
    """

    right: np.ndarray  # right predictions of each label
    marked: np.ndarray  # its predictions and occurrences together
    exact: int
    examples: int

    def __init__(self, labels: Labels, threshold: float = 0.5) -> None:
        self.labels, self.threshold = labels, threshold
        zeros = np.zeros(len(labels), np.int64)
        super().__init__(right=zeros, marked=zeros, exact=0, examples=0)

    def update(self, outputs: Any, batch: Any) -> None:
        """Count a batch."""
        true = np.asarray(batch["labels"]) > 0
        predicted = np.asarray(outputs) > self.threshold
        self.right += (true & predicted).sum(axis=0)
        self.marked += true.sum(axis=0) + predicted.sum(axis=0)
        self.exact += int((true == predicted).all(axis=1).sum())
        self.examples += len(true)

    def result(self) -> dict[str, float]:
        """Return the figures, each from 0 to 1."""
        f1 = 2 * self.right / np.maximum(self.marked, 1)
        return {
            "f1_micro": float(2 * self.right.sum() / max(self.marked.sum(), 1)),
            "f1_macro": float(f1.mean()),
            "accuracy": self.exact / max(self.examples, 1),
        }
