"""Figures of choosing any number of labels, all from a few counts a label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onion.tasks.data.labels import Labels


class MultiLabelMetric:
    """F1 and exact matches over probabilities ``[batch, labels]`` and ``batch["labels"]``, 0 or 1 of the same shape.

    ``f1_micro`` is the F1 of all decisions together, ``f1_macro`` the unweighted mean of the labels' F1; an F1 of what
    neither occurs nor is predicted counts as 0 (as in scikit-learn's ``zero_division=0``). ``accuracy`` is the share of
    examples all of whose labels are right and no other.

    Args:
        labels: the labels, in the order of the probabilities.
        threshold: labels with a probability over it are predicted.
    """

    def __init__(self, labels: Labels, threshold: float = 0.5) -> None:
        self.labels, self.threshold = labels, threshold
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._right = np.zeros(len(self.labels), np.int64)
        self._marked = np.zeros(len(self.labels), np.int64)
        self._exact = self._examples = 0

    def update(self, outputs: Any, batch: Any) -> None:
        """Count a batch."""
        true = np.asarray(batch["labels"]) > 0
        predicted = np.asarray(outputs) > self.threshold
        self._right += (true & predicted).sum(axis=0)
        self._marked += true.sum(axis=0) + predicted.sum(axis=0)
        self._exact += int((true == predicted).all(axis=1).sum())
        self._examples += len(true)

    def state_dict(self) -> dict[str, Any]:
        """Return the counts: a label's right predictions, and its predictions and occurrences together."""
        return {
            "right": self._right,
            "marked": self._marked,
            "exact": self._exact,
            "examples": self._examples,
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take them back."""
        self._right, self._marked = np.array(saved["right"]), np.array(saved["marked"])
        self._exact, self._examples = int(saved["exact"]), int(saved["examples"])

    def result(self) -> dict[str, float]:
        """Return the figures, each from 0 to 1."""
        f1 = 2 * self._right / np.maximum(self._marked, 1)
        return {
            "f1_micro": float(2 * self._right.sum() / max(self._marked.sum(), 1)),
            "f1_macro": float(f1.mean()),
            "accuracy": self._exact / max(self._examples, 1),
        }
