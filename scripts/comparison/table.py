"""The table of ``make parity``: a row for each comparison, and whether all agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

TOLERANCE = 1e-5
HEAD = ("what", "against", "layouts", "outputs", "gradients", "verdict")


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        what: was computed.
        against: name and version of who computed it too.
        layouts: that were read, or whatever else says how.
        outputs: the largest difference; infinite where shapes or ids differ.
        gradients: the same over all parameters, each relative to its largest element where that exceeds 1; None where
            there are none to compare.
        unit: what is counted, where the outputs are not numbers but differ or not: ``"lines"``.
    """

    what: str
    against: str
    layouts: str
    outputs: float
    gradients: float | None = None
    unit: str = ""

    @property
    def agrees(self) -> bool:
        """Whether every difference is there, is a number, and is small enough."""
        limit = 0.0 if self.unit else TOLERANCE
        found = [self.outputs] if self.gradients is None else [self.outputs, self.gradients]
        return all(value <= limit for value in found)  # not so of nan

    @property
    def cells(self) -> tuple[str, ...]:
        """What is printed."""
        outputs = f"{self.outputs:g} {self.unit}" if self.unit else f"{self.outputs:.1e}"
        gradients = "-" if self.gradients is None else f"{self.gradients:.1e}"
        return self.what, self.against, self.layouts, outputs, gradients, "equal" if self.agrees else "DIFFERS"


def worst(differences: Iterable[float]) -> float:
    """The largest; nan is larger than all else, and nothing to compare is infinitely wrong."""
    found = list(differences)
    if not found:
        return math.inf
    return math.nan if any(map(math.isnan, found)) else max(found)


def rendered(rows: Sequence[Row]) -> str:
    """The rows as columns of plain text."""
    lines = [HEAD, *(row.cells for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def all_agree(rows: Sequence[Row]) -> bool:
    """Whether there are rows, and every one of them agrees."""
    return bool(rows) and all(row.agrees for row in rows)
