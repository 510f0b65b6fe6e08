"""The rows that were predicted wrongly, those with the largest figure first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from onion.tasks.data.rows import Row
from onion.tasks.data.texts import PAIR, TEXT
from onion.tasks.reports.report import Sheet

NAME = "errors.csv"
PLACE = ("file", "line")


@attrs.frozen
class Error:
    """A wrong prediction.

    Attributes:
        row: the row.
        label: what is true.
        predicted: what was predicted.
        weight: how wrong it is, such as the probability that the model gave to it.
    """

    row: Row
    label: Any
    predicted: Any
    weight: float


def error_sheet(errors: Iterable[Error], weight: str) -> Sheet:
    """Return file, line and texts of each error, with label, prediction and weight; the largest weight comes first.

    Errors of the same weight stay in the order of the file.

    Args:
        errors: in the order of the file.
        weight: the name of the last column, such as ``confidence``.
    """
    ordered = sorted(errors, key=lambda error: -abs(error.weight))
    texts = [TEXT, *[PAIR] * any(error.row.cells.get(PAIR) is not None for error in ordered)]
    return Sheet(
        [*PLACE, *texts, "label", "predicted", weight],
        [[*placed(error.row, texts), error.label, error.predicted, error.weight] for error in ordered],
    )


def placed(row: Row, columns: Sequence[str] = ()) -> list[Any]:
    """Return file, line and some cells of a row."""
    return [str(row.path), row.line, *(row.cells.get(name, "") for name in columns)]
