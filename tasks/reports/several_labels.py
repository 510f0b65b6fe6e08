"""The report of tasks with any number of labels for each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from onion.tasks.data.labels import Labels
from onion.tasks.data.rows import Row
from onion.tasks.reports.classes import Classes, mean_scores
from onion.tasks.reports.errors import NAME, Error, error_sheet
from onion.tasks.reports.matrix import Matrix
from onion.tasks.reports.report import Report

DECISIONS = ("true positive", "false negative", "false positive", "true negative")


def several_labels_report(
    labels: Labels,
    rows: Sequence[Row],
    true: Sequence[Sequence[str]],
    predicted: Sequence[tuple[Sequence[str], Mapping[str, float]]],
    separator: str = ",",
) -> Report:
    """Return the figures of each label, the four counts of its decisions, and the rows with a wrong one.

    The confidence of an error is the largest probability that the model gave to one of its wrong decisions.

    Args:
        labels: all of them, in their order.
        rows: of a file.
        true: the labels of each row.
        predicted: the labels that were predicted for each row, and the probability of every label.
        separator: between labels in a cell.
    """
    marks, found = _marks(labels, true), _marks(labels, [names for names, _ in predicted])
    right, wanted, said = (marks & found).sum(axis=0), marks.sum(axis=0), found.sum(axis=0)
    classes = Classes(labels.names, right, wanted, said)
    counts = np.stack([right, wanted - right, said - right, len(rows) - wanted - said + right], axis=1)
    matrix = Matrix(labels.names, DECISIONS, counts, "decisions", right=[(0, 3)] * len(labels))
    chances = np.array([[each[name] for name in labels] for _, each in predicted]).reshape(len(rows), len(labels))
    doubt = np.where(marks == found, 0.0, np.where(found, chances, 1 - chances)).max(axis=1)
    errors = [
        Error(
            rows[place], separator.join(true[place]), separator.join(predicted[place][0]), round(float(doubt[place]), 6)
        )
        for place in np.flatnonzero((marks != found).any(axis=1)).tolist()
    ]
    averages = {
        **classes.averages(),
        "samples": mean_scores(*(each.sum(axis=1) for each in (marks & found, marks, found))),
    }
    return Report(
        summary={"per_class": classes.scores(), "averages": averages, "errors": len(errors)},
        sheets={
            "per_class.csv": classes.sheet(),
            "confusion_matrix.csv": matrix.sheet(),
            NAME: error_sheet(errors, "confidence"),
        },
        pictures={"confusion_matrix.svg": matrix.picture()},
    )


def _marks(labels: Labels, names: Sequence[Sequence[str]]) -> np.ndarray:
    """Return which row has which label, bool [rows, labels]."""
    return np.array([[label in some for label in labels] for some in names], bool).reshape(len(names), len(labels))
