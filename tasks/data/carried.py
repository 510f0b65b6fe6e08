"""Columns of a file that are carried into its results, such as an id."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from onion.data.files import FORMATS
from onion.data.opening import is_fed
from onion.errors import DataError
from onion.tasks.data.features.hashing import ending_of
from onion.tasks.data.rows import Row, file_rows, holds_half_a_character


def carried(
    path: Path, data: str | Path, names: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[Mapping[str, Any]]:
    """Yield the cells of some columns of each row.

    Args:
        path: a file of rows that a task can read (``onion.tasks.data.prepared``).
        data: what it was made of, for messages.
        names: of the columns that every row must have.
        optional: of those that it may have.

    Raises:
        DataError: the file has no columns or can be read once only; or a row lacks a column, or has text that no file
            can have.
    """
    if is_fed(path) or ending_of(path) not in FORMATS:
        raise DataError(f"--carry: {data} has no rows that can be read a second time; give a {', '.join(FORMATS)} file")
    return map(_printable, file_rows(path, names, optional))


def _printable(row: Row) -> Mapping[str, Any]:
    """Return the cells of a row, which have to be written: JSON can hold half of a character, UTF-8 cannot."""
    for name, cell in row.cells.items():
        if holds_half_a_character(json.dumps(cell, ensure_ascii=False, default=str)):
            raise row.error(f"{name} has an unpaired surrogate (\\ud800 to \\udfff), which --carry cannot write")
    return row.cells
