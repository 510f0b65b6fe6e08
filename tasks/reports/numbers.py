"""The report of tasks that predict a number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onion.tasks.data.rows import Row
from onion.tasks.reports.errors import NAME, Error, error_sheet
from onion.tasks.reports.report import Report
from onion.tasks.reports.scatter import scatter


def numbers_report(rows: Sequence[Row], true: Sequence[float], predicted: Sequence[float]) -> Report:
    """Return the residuals, predicted minus true: their figures, and all rows, the largest residual first.

    Args:
        rows: of a file, at least one.
        true: the number of each row.
        predicted: the same.
    """
    labels, values = np.array(true, np.float64), np.array(predicted, np.float64)
    residuals, spread = values - labels, labels - labels.mean()
    errors = [
        Error(row, label, value, round(float(residual), 6))
        for row, label, value, residual in zip(rows, true, predicted, residuals, strict=True)
    ]
    total = float(spread @ spread)
    return Report(
        summary={
            "residuals": {
                "mean": float(residuals.mean()),
                "mean_absolute": float(np.abs(residuals).mean()),
                "root_mean_square": float(np.sqrt(np.mean(residuals**2))),
                "largest": float(np.abs(residuals).max()),
                "r2": 1 - float(residuals @ residuals) / total if total else 0.0,
            }
        },
        sheets={NAME: error_sheet(errors, "residual")},
        pictures={"residuals.svg": scatter(labels, values)},
    )
