"""The report of tasks with one label for each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onion.tasks.data.labels import Labels
from onion.tasks.data.rows import Row
from onion.tasks.reports.classes import Classes
from onion.tasks.reports.errors import NAME, Error, error_sheet
from onion.tasks.reports.matrix import Matrix
from onion.tasks.reports.report import Report


def one_label_report(
    labels: Labels, rows: Sequence[Row], true: Sequence[str], predicted: Sequence[tuple[str, float]]
) -> Report:
    """Return the figures of each label, the confusion matrix, and the errors, the most confident first.

    Args:
        labels: all of them, in their order; figures of those that do not occur are 0.
        rows: of a file.
        true: the label of each row.
        predicted: the label that was predicted for each row, and its probability.
    """
    numbers = labels.numbers()
    sides = ([numbers[label] for label in true], [numbers[label] for label, _ in predicted])
    matrix = Matrix.square(labels.names, *(np.array(side, np.int64) for side in sides))
    counts = matrix.counts
    classes = Classes(labels.names, np.diag(counts), counts.sum(axis=1), counts.sum(axis=0))
    errors = [
        Error(row, label, found, confidence)
        for row, label, (found, confidence) in zip(rows, true, predicted, strict=True)
        if label != found
    ]
    return Report(
        summary={"per_class": classes.scores(), "averages": classes.averages(), "errors": len(errors)},
        sheets={
            "per_class.csv": classes.sheet(),
            "confusion_matrix.csv": matrix.sheet(),
            NAME: error_sheet(errors, "confidence"),
        },
        pictures={"confusion_matrix.svg": matrix.picture()},
    )
