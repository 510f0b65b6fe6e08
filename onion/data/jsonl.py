"""Rows out of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from onion.data.table import ABSENT, Table, at
from onion.messages import listed

JSON_LINES = ".jsonl"
"""The ending of the files read here."""


def json_rows(path: Path, lines: Iterator[str], columns: tuple[str, ...], optional: tuple[str, ...]) -> Table:
    """The rows of a ``.jsonl`` file; the arguments are those of `onion.data.read_rows`."""
    cells, numbers = [], []
    # All columns are wanted, but which they are is known at the end only: rows may differ in them.
    names = dict.fromkeys(columns + optional)
    every = not names
    for number, row in json_objects(path, lines, columns):
        if every:
            names.update(dict.fromkeys(row))
        cells.append(tuple([row.get(name, ABSENT) for name in names]))
        numbers.append(number)
    missing = len(names)
    padded = [row + (ABSENT,) * (missing - len(row)) for row in cells] if every else cells
    return Table(path, tuple(names), padded, numbers)


def json_objects(path: Path, lines: Iterator[str], columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object, which has the columns, of every line that is not a blank one at the end."""
    blank = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            blank = blank or number
            continue
        if blank:
            raise at(path, blank, "a blank line between objects; remove it")
        row = _object(path, number, line)
        for name in columns:
            if name not in row:
                raise at(path, number, f"there is no {name!r} in this object; it has {listed(row)}")
        yield number, row


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise at(path, number, f"broken JSON at column {error.colno} ({error.msg}); write one object a line") from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets a thousand deep
        raise at(path, number, f"JSON that Python does not read ({error}); write one plain object a line") from None
    if not isinstance(row, dict):
        kind = type(row).__name__
        raise at(path, number, f'this line is a JSON {kind}, not an object; write it as {{"column": value}}')
    return row
