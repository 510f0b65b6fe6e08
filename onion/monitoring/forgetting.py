"""The forgetting matrix: how good each task is after each stage of a continual training, read from its log."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import nan
from pathlib import Path

import attrs
import numpy as np

from onion.data.files import read_rows
from onion.data.table import Table
from onion.errors import DataError
from onion.svg import SIZE, fitted, label, picture, text_of, width_of
from onion.validation import is_count, is_number

FULL = (76, 175, 80)
"""Red, green and blue of a task's best figure; worse ones are lighter."""
GRID, GREY, EDGE = "#e0e0e0", "#757575", 12


@attrs.frozen(eq=False)
class ForgettingMatrix:
    """A figure of each task after each stage.

    Attributes:
        tasks: their names.
        figures: float64 [stages, tasks]; NaN: the task was not tested after the stage.
        entered: of each task the stage in which it came in, from 0.
        less_is_better: the tasks whose figure is the better the smaller it is, such as a loss.
    """

    tasks: Sequence[str]
    figures: np.ndarray
    entered: Sequence[int]
    less_is_better: Collection[str] = ()

    def forgetting(self) -> dict[str, float]:
        """Return how much worse each task is after the last stage than it was at its best after an earlier one.

        This is the forgetting measure of Chaudhry et al. (2018, Riemannian Walk), in units of the figure;
        below 0: the task has become better still. NaN: it came in at the last stage, or was not tested.
        """
        return {task: self._best_before(column) - self._good[-1, column] for column, task in enumerate(self.tasks)}

    def backward_transfer(self) -> dict[str, float]:
        """Return how much better each task is after the last stage than after that in which it came in.

        This is each task's part of the backward transfer of Lopez-Paz and Ranzato (2017, Gradient Episodic Memory),
        in units of the figure; below 0: later stages have made it worse. NaN: as in ``forgetting``.
        """
        good, last = self._good, len(self.figures) - 1
        return {
            task: float(good[-1, column] - good[entered, column]) if entered < last else nan
            for column, (task, entered) in enumerate(zip(self.tasks, self.entered, strict=True))
        }

    @property
    def _good(self) -> np.ndarray:
        """The figures, float64 [stages, tasks], of which more is better."""
        signs = np.array([-1.0 if task in self.less_is_better else 1.0 for task in self.tasks])
        good: np.ndarray = self.figures * signs
        return good

    def _best_before(self, column: int) -> float:
        earlier = self._good[self.entered[column] : -1, column]
        return float(np.nanmax(earlier)) if np.isfinite(earlier).any() else nan

    def table(self) -> str:
        """Return the figures, and below them forgetting and backward transfer, as lines of text."""
        lines = [["stage", *self.tasks]]
        lines += [[f"{stage}", *map(_told, row)] for stage, row in enumerate(self.figures.tolist(), start=1)]
        lines += [["forgetting", *map(_told, self.forgetting().values())]]
        lines += [["backward transfer", *map(_told, self.backward_transfer().values())]]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        first, *others = widths
        return "\n".join(
            "  ".join([line[0].ljust(first), *(each.rjust(wide) for each, wide in zip(line[1:], others, strict=True))])
            for line in lines
        )

    def svg(self) -> str:
        """Draw the figures: a cell is the greener the better it is among those of its task."""
        side = max(60.0, *(width_of(fitted(task)) + 12 for task in self.tasks))
        left, top, high = EDGE + width_of("stage 99") + 8, EDGE + 3 * SIZE, 2.4 * SIZE
        parts = [
            *(
                label(task, left + (column + 0.5) * side, top - 8, text_anchor="middle")
                for column, task in enumerate(self.tasks)
            ),
            *(
                label(f"stage {stage + 1}", left - 8, top + (stage + 0.5) * high + 4, text_anchor="end", fill=GREY)
                for stage in range(len(self.figures))
            ),
            *self._cells(left, top, side, high),
        ]
        wide, tall = side * len(self.tasks), high * len(self.figures)
        return picture(left + wide + EDGE, top + tall + EDGE, "figures of each task after each stage", parts)

    def _cells(self, left: float, top: float, side: float, high: float) -> Iterator[str]:
        good = self._good
        for stage, column in np.argwhere(~np.isnan(self.figures)).tolist():
            seen = good[:, column][~np.isnan(good[:, column])]
            span = float(seen.max() - seen.min())
            strength = (float(good[stage, column]) - float(seen.min())) / span if span else 1.0
            x, y, figure = left + column * side, top + stage * high, _told(float(self.figures[stage, column]))
            told = text_of(f"{self.tasks[column]} after stage {stage + 1}: {figure}")
            yield (
                f"<g><title>{told}</title>"
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" height="{high:.1f}" fill="{_shade(strength)}" '
                f'stroke="{GRID}"/>{label(figure, x + side / 2, y + high / 2 + 4, text_anchor="middle")}</g>'
            )


def forgetting(log: str | Path, figures: Mapping[str, str], less_is_better: Collection[str] = ()) -> ForgettingMatrix:
    """Read from the log of a run how good each task was after each stage.

        forgetting("run/metrics.jsonl", {"mask": "mask.accuracy", "capital": "capital.accuracy"}).table()

    A stage is a pass (``onion.multitask.stages.Stages``); of several tests in a pass the last one counts, that of a
    ``Tester(every="pass")``. A task comes in with the first pass that has a batch of it (``done.<task>`` in the log),
    or, where the log does not tell, that after which it is tested first.

    Args:
        log: a file of ``Logger``.
        figures: task -> its figure in the log: the name of its Tester, a dot, and the metric's.
        less_is_better: the tasks whose figure is the better the smaller it is, such as a loss or a perplexity.

    Raises:
        DataError: the file cannot be read, or lacks a figure; the message says which.
    """
    done = {task: f"done.{task}" for task in figures}
    rows = read_rows(log, columns=["pass"], optional=[*dict.fromkeys([*figures.values(), *done.values()])])
    tested = {task: _by_pass(rows, name) for task, name in figures.items()}
    for task, name in figures.items():
        if not tested[task]:
            raise DataError(
                f"{log}: no row has {name!r}, the figure of the task {task!r}; a Tester of the task, with every='pass' "
                "and inside the Logger, writes it"
            )
    matrix = np.full([1 + max(map(max, tested.values())), len(figures)], nan)
    for column, found in enumerate(tested.values()):
        matrix[list(found), column] = list(found.values())
    begun = {task: [stage for stage, count in _by_pass(rows, name).items() if count > 0] for task, name in done.items()}
    entered = [min(begun[task] or tested[task]) for task in figures]
    return ForgettingMatrix(list(figures), matrix, entered, less_is_better)


def _by_pass(rows: Table, name: str) -> dict[int, float]:
    """Return the last value of a figure in each pass that has one."""
    found: dict[int, float] = {}
    for place, row in enumerate(rows):
        if name in row:
            if not is_count(row["pass"]) or not is_number(row[name]):
                raise rows.error(place, f"'pass' and {name!r} must be finite numbers; give it the log of a run")
            found[row["pass"]] = float(row[name])
    return found


def _told(figure: float) -> str:
    return "-" if np.isnan(figure) else f"{figure:.4g}"


def _shade(strength: float) -> str:
    """Return a colour from almost white (0) to the full one (1); the letters on it stay black."""
    share = 0.12 + 0.88 * strength
    return f"rgb({','.join(str(round(255 - share * (255 - each))) for each in FULL)})"
