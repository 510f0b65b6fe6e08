"""Precision, recall, F1 and support of each class, and their averages.

Source: scikit-learn's ``classification_report``; a figure without anything to divide by is 0 (``zero_division=0``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs
import numpy as np

from onion.tasks.reports.report import Sheet

FIGURES = ("precision", "recall", "f1", "support")
Scores = Mapping[str, float]


@attrs.frozen(eq=False)
class Classes:
    """How often each class occurs, was predicted, and both.

    Attributes:
        names: of the classes.
        right: int64 [classes], how often it was predicted where it is true.
        true: int64 [classes], how often it is true: its support.
        predicted: int64 [classes], how often it was predicted.
    """

    names: Sequence[str]
    right: np.ndarray
    true: np.ndarray
    predicted: np.ndarray

    def scores(self) -> dict[str, Scores]:
        """Return the figures of each class, by its name."""
        rows = _scores(self.right, self.true, self.predicted)
        return {name: _named(row) for name, row in zip(self.names, rows, strict=True)}

    def averages(self) -> dict[str, Scores]:
        """Return the averages over all classes; their support is the sum.

        ``micro``: of all counts together, which is the accuracy where every row has one label; ``macro``: the
        unweighted mean; ``weighted``: the mean by support.
        """
        counts = self.right, self.true, self.predicted
        rows, support = _scores(*counts), self.true.sum()
        return {
            "micro": mean_scores(*(each.sum(keepdims=True) for each in counts)),
            "macro": mean_scores(*counts),
            "weighted": _named([*(self.true @ rows / max(support, 1))[:3], support]),
        }

    def sheet(self) -> Sheet:
        """Return a row for each class."""
        return Sheet(["label", *FIGURES], [[name, *scores.values()] for name, scores in self.scores().items()])


def mean_scores(right: np.ndarray, true: np.ndarray, predicted: np.ndarray) -> Scores:
    """Return the unweighted means over classes, or over whatever else the counts are of, and the sum of ``true``.

    Args: int64 [classes] each; see :class:`Classes`.
    """
    rows = _scores(right, true, predicted)
    return _named([*rows.mean(axis=0)[:3], true.sum()])


def _scores(right: np.ndarray, true: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return the figures of each class, float64 [classes, 4]."""
    precision, recall = right / np.maximum(predicted, 1), right / np.maximum(true, 1)
    f1 = 2 * right / np.maximum(true + predicted, 1)
    return np.stack([precision, recall, f1, true], axis=1)


def _named(row: Iterable[float]) -> Scores:
    precision, recall, f1, support = map(float, row)
    return {"precision": precision, "recall": recall, "f1": f1, "support": int(support)}
