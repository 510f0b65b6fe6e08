"""How results are written: values as JSON, rows as the lines of a CSV file."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from onion.errors import DataError


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON, which has no NaN and no infinity: the figures of a run that diverged become null.

    Args:
        value: of mappings, lists, texts and numbers.
        indent: spaces per level. Default: all in one line.
    """
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, indent=indent)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return list(map(_finite, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def csv_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a header and a line for each row, without line ends (RFC 4180).

    A value that is an object becomes a column for each of its names, ``probabilities.good``; a list becomes JSON.

    Raises:
        DataError: a row has other columns than the first one.
    """
    names: list[str] = []
    for number, row in enumerate(rows, 1):
        cells = dict(_flat(row))
        if not names:
            names = list(cells)
            yield csv_line(names)
        unknown = cells.keys() - names
        if unknown:
            raise DataError(f"row {number} has the column {min(unknown)!r}, which the first lacks; write JSON lines")
        yield csv_line([cells.get(name, "") for name in names])


def _flat(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", each) for inner, each in _flat(value))
        else:
            yield name, json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


def csv_line(cells: Iterable[Any]) -> str:
    """Return one line of cells, without its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)  # the line end makes the writer quote cells with \r or \n
    return text.getvalue().removesuffix("\r\n")
