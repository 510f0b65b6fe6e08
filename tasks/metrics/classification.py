"""Metrics of classification with one label or any number of labels, from tables of counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from onion.tasks.data.labels import Labels
from onion.tasks.metrics.state import StatefulMetric


class ClassificationMetric(StatefulMetric):
    """Accuracy, F1 and Matthews' correlation over scores ``[batch, classes]`` and ``batch["labels"]``.

    ``f1_macro`` is the unweighted mean of the labels' F1; with two labels ``f1`` is that of the second. The F1 of a
    label that neither occurs nor is predicted is 0 (as with scikit-learn's ``zero_division=0``). ``matthews`` is
    Matthews' correlation coefficient (for more labels: Gorodkin 2004), 0 where one side has one label only.

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


class MultiLabelMetric(StatefulMetric):
    """F1 and exact matches of probabilities ``[batch, labels]`` and ``batch["labels"]``, 0 or 1 of the same shape.

    ``f1_micro`` is the F1 of all decisions together, ``f1_macro`` the unweighted mean of the labels' F1; undefined F1
    are 0 (as with scikit-learn's ``zero_division=0``). ``accuracy`` is the share of examples whose labels are all
    correct.

    Args:
        labels: the labels, in the order of the probabilities.
        threshold: labels with a larger probability are predicted.
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


def _matthews(counts: np.ndarray) -> float:
    """Return the correlation of true and predicted labels."""
    true, predicted, total = counts.sum(axis=1), counts.sum(axis=0), counts.sum()
    spread = (total**2 - true @ true) * (total**2 - predicted @ predicted)
    return float((np.trace(counts) * total - true @ predicted) / np.sqrt(spread)) if spread > 0 else 0.0
