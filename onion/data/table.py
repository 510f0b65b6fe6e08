"""`Table`: rows in memory that remember where they came from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from onion.errors import DataError

Row = dict[str, Any]
"""Column name -> value. A value is a `str`, except in rows of a ``.jsonl`` file, where it is what JSON says."""

ABSENT = ...
"""Stands in a row's cells for an optional column that this row lacks. No format can write an Ellipsis."""


def at(path: Path, line: int, what: str) -> DataError:
    """The error for one line of a file: ``path:line: what``."""
    return DataError(f"{path}:{line}: {what}")


class Table(Sequence[Row]):
    """The rows of one file: a sequence of dicts, each made when it is asked for.

    Kept as tuples of cells, which take less than half the memory of dicts.

    Args:
        path: The file the rows came from.
        columns: The names of the columns.
        cells: For every row one value a column, or `ABSENT`.
        lines: For every row the line of the file it starts in (the first line is 1).
    """

    __slots__ = ("_cells", "_lines", "columns", "path")

    def __init__(
        self, path: Path, columns: Sequence[str], cells: list[tuple[Any, ...]], lines: Sequence[int] | NDArray[np.int64]
    ) -> None:
        self.path = path
        self.columns = tuple(columns)
        self._cells = cells
        self._lines = np.asarray(lines, np.int64)

    def __len__(self) -> int:
        return len(self._cells)

    @property
    def fingerprint(self) -> str:
        """The sha256 of columns and cells; it reads all of them."""
        digest = hashlib.sha256(repr(self.columns).encode())
        for cells in self._cells:
            digest.update(repr(cells).encode("utf-8", "surrogatepass"))
        return f"sha256 {digest.hexdigest()}"

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Table: ...
    def __getitem__(self, index: int | slice) -> Row | Table:
        if isinstance(index, slice):
            return Table(self.path, self.columns, self._cells[index], self._lines[index])
        return self._row(self._cells[index])

    def __iter__(self) -> Iterator[Row]:
        return map(self._row, self._cells)

    def __repr__(self) -> str:
        return f"Table({str(self.path)!r}, {len(self)} rows of {', '.join(self.columns)})"

    def _row(self, cells: tuple[Any, ...]) -> Row:
        if ABSENT in cells:
            return {name: cell for name, cell in zip(self.columns, cells, strict=True) if cell is not ABSENT}
        return dict(zip(self.columns, cells, strict=True))

    def line(self, index: int) -> int:
        """The line of the file that row `index` starts in; the first line of a file is 1."""
        return int(self._lines[index])

    def error(self, index: int, what: str) -> DataError:
        """The error to raise when row `index` is wrong: ``path:line: what``.

        Args:
            index: The row, from 0.
            what: What was wrong, and after a semicolon what to do.
        """
        return at(self.path, self.line(index), what)
