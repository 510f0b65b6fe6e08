"""A table of counts, as CSV and as a picture: the confusion matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from onion.svg import SIZE, fitted, label, picture, text_of, width_of
from onion.tasks.reports.report import Sheet

RIGHT, WRONG = (76, 175, 80), (229, 57, 53)
"""Red, green and blue of a full cell, of a right prediction and of a wrong one; emptier ones are lighter."""
GRID, EDGE = "#e0e0e0", 12


@attrs.frozen(eq=False)
class Matrix:
    """Counts of each pair of a true and a predicted value.

    Attributes:
        rows: the names of the rows: the labels that are true.
        columns: the names of the columns: the labels that were predicted.
        counts: int64 [rows, columns].
        across: what the columns are.
        down: what the rows are.
        right: the columns of right predictions, of each row. Default: the diagonal.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    counts: np.ndarray
    across: str = "predicted"
    down: str = "label"
    right: Sequence[Sequence[int]] | None = None

    @classmethod
    def square(cls, names: Sequence[str], true: np.ndarray, predicted: np.ndarray) -> Matrix:
        """Count pairs of numbers, int64 [any], of true and predicted names."""
        counts = np.zeros((len(names), len(names)), np.int64)
        np.add.at(counts, (true, predicted), 1)
        return cls(names, names, counts)

    def sheet(self) -> Sheet:
        """Return the counts; the first column has the names of the rows."""
        return Sheet(
            [self.down, *self.columns],
            [[name, *counts] for name, counts in zip(self.rows, self.counts.tolist(), strict=True)],
        )

    def picture(self) -> str:
        """Draw the counts: a cell is as dark as its share of its row; green if right, red if wrong."""
        side = max(30, *(width_of(f"{count}") + 10 for count in self.counts.ravel().tolist()))
        left = EDGE + 2 * SIZE + max(width_of(fitted(name)) for name in self.rows)
        widest = max(width_of(fitted(name)) for name in self.columns)
        level = widest <= side - 6  # else the names of the columns are turned
        top = EDGE + 2 * SIZE + (SIZE if level else widest)
        wide, tall = side * len(self.columns), side * len(self.rows)
        parts = [
            label(self.across, left + wide / 2, EDGE + 8, text_anchor="middle", fill="#757575"),
            label(self.down, EDGE, top - 8, fill="#757575"),
            *self._names(left, top, side, level),
            *_grid(left, top, side, len(self.rows), len(self.columns)),
            *self._cells(left, top, side),
        ]
        title = f"{self.down} by {self.across}: {self.counts.sum()}"
        return picture(max(left + wide, 150) + EDGE, top + tall + EDGE, title, parts)

    def _names(self, left: float, top: float, side: float, level: bool) -> Iterator[str]:
        for row, name in enumerate(self.rows):
            yield label(name, left - 8, top + (row + 0.5) * side + 4, text_anchor="end")
        for column, name in enumerate(self.columns):
            x, y = left + (column + 0.5) * side, top - 8
            if level:
                yield label(name, x, y, text_anchor="middle")
            else:
                yield label(name, x + 4, y, transform=f"rotate(-90 {x + 4:.1f} {y:.1f})")

    def _cells(self, left: float, top: float, side: float) -> Iterator[str]:
        """Yield the cells that are not 0: of a thousand labels they are few."""
        shares = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        for row, column in np.argwhere(self.counts).tolist():
            count, share = int(self.counts[row, column]), float(shares[row, column])
            full = RIGHT if column in (self.right[row] if self.right else [row]) else WRONG
            x, y = left + column * side, top + row * side
            told = f"{self.rows[row]}, {self.across} {self.columns[column]}: {count} ({share:.1%})"
            yield (
                f"<g><title>{text_of(told)}</title>"
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{side:.1f}" fill="{_shade(full, share)}"/>'
                f"{label(str(count), x + side / 2, y + side / 2 + 4, text_anchor='middle')}</g>"
            )


def _grid(left: float, top: float, side: float, rows: int, columns: int) -> Iterator[str]:
    down = [f"M{left + column * side:.1f} {top:.1f}v{rows * side:.1f}" for column in range(columns + 1)]
    across = [f"M{left:.1f} {top + row * side:.1f}h{columns * side:.1f}" for row in range(rows + 1)]
    yield f'<path d="{"".join(down + across)}" stroke="{GRID}" fill="none"/>'


def _shade(full: tuple[int, int, int], share: float) -> str:
    """Return a colour from almost white to the full one; the letters on it stay black."""
    strength = 0.12 + 0.88 * share
    return f"rgb({','.join(str(round(255 - strength * (255 - each))) for each in full)})"
