"""Figures of classification, all from one table of counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from onion.tasks.data.labels import Labels
from onion.tasks.metrics.state import StatefulMetric


class ClassificationMetric(StatefulMetric):
    """Accuracy, F1 and Matthews' correlation over scores ``[batch, classes]`` and ``batch["labels"]``.

    ``f1_macro`` is the unweighted mean of the labels' F1; with two labels ``f1`` is that of the second one. The F1 of a
    label that neither occurs nor is predicted counts as 0 (as in scikit-learn's ``zero_division=0``). ``matthews`` is
    Matthews' correlation coefficient (for more than two labels: Gorodkin 2004), 0 where one side has one label only.

    Args:
        labels: the labels, in the order of the logits.
    """

    counts: np.ndarray

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        super().__init__(counts=np.zeros((len(labels), len(labels)), np.int64))

    def update(self, outputs: Any, batch: Any) -> None:
        """Count a batch: rows are the true labels, columns the predicted ones."""
        predicted = np.argmax(np.asarray(outputs), axis=-1)
        np.add.at(self.counts, (np.asarray(batch["labels"]), predicted), 1)

    def result(self) -> dict[str, float]:
        """Return the figures, each from 0 to 1."""
        right = np.diag(self.counts)
        total = self.counts.sum()
        f1 = 2 * right / np.maximum(self.counts.sum(axis=0) + self.counts.sum(axis=1), 1)
        figures = {"accuracy": float(right.sum() / max(total, 1)), "f1_macro": float(f1.mean())}
        figures["matthews"] = _matthews(self.counts.astype(np.float64))
        return {**figures, "f1": float(f1[1])} if len(self.labels) == 2 else figures


def _matthews(counts: np.ndarray) -> float:
    """The correlation of what is true and what was predicted."""
    true, predicted, total = counts.sum(axis=1), counts.sum(axis=0), counts.sum()
    spread = (total**2 - true @ true) * (total**2 - predicted @ predicted)
    return float((np.trace(counts) * total - true @ predicted) / np.sqrt(spread)) if spread > 0 else 0.0
