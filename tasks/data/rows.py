"""Rows of text files, one by one; each knows where it came from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from onion.data.files import iter_rows
from onion.data.table import at
from onion.errors import DataError
from onion.messages import listed, shown

STANDARD_INPUT = Path("standard input")

AT = "@at"
"""The column of a converted file (``onion.tasks.data.prepared``) with the file and line that a row came from."""


@attrs.frozen
class Row:
    """One row of a file.

    Attributes:
        path: the file.
        line: where it starts; the first line is 1.
        cells: column name -> value, a text except in rows of JSON.
    """

    path: Path
    line: int
    cells: Mapping[str, Any]

    def error(self, what: str) -> DataError:
        """Return the error to raise when this row is wrong: ``path:line: what``."""
        return at(self.path, self.line, what)

    def text(self, column: str) -> str:
        """Return a cell that has to be a text.

        Raises:
            DataError: it is none, or one that JSON's escapes wrote and that cannot be encoded.
        """
        value = self.cells[column]
        if not isinstance(value, str):
            raise self.error(f"{column} is {shown(value)}, not a text; put it in quotes")
        if holds_half_a_character(value):
            raise self.error(f"{column} holds half of a surrogate pair (\\ud800 to \\udfff); mend the text")
        return value

    def word(self, column: str) -> str:
        """Return a cell that is a text or, in JSON, a number; ``2`` is ``"2"``, and so is ``2.0``.

        Raises:
            DataError: it is neither.
        """
        value = self.cells[column]
        if isinstance(value, float) and not math.isfinite(value):  # Python reads and writes NaN and Infinity
            raise self.error(f"{column} is {value}, which is no number of JSON; mend the value")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(int(value) if isinstance(value, float) and value.is_integer() else value)
        return self.text(column)

    def label(self, column: str) -> str:
        """Return a word without the white space around it, which is no part of a label.

        Raises:
            DataError: it is no word, or nothing is left of it.
        """
        word = self.word(column).strip()
        if not word:
            raise self.error(f"{column} is empty; give this row one, or take it out")
        return word

    def number(self, column: str) -> float:
        """Return a cell that has to be a finite number.

        Raises:
            DataError: it is none.
        """
        word = self.word(column)
        try:
            value = float("nan" if "_" in word else word)  # Python would take 1_000
        except ValueError:
            value = float("nan")
        if not abs(value) < float("inf"):
            raise self.error(f"{column} is {shown(word)}, not a number")
        return value


def holds_half_a_character(text: str) -> bool:
    """Whether a text holds half of a surrogate pair: JSON's escapes can write one, and nothing can encode it."""
    return not text.isascii() and text.encode(errors="ignore").decode() != text


def file_rows(path: str | Path, columns: Sequence[str], optional: Sequence[str] = ()) -> Iterator[Row]:
    """Give the rows of a file (``onion.data.files.iter_rows`` tells the formats); one is in memory at a time.

    Raises:
        DataError: the file is not what it should be, or has no rows; file and line are named.
    """
    path = Path(path)
    line = 0
    for line, cells in iter_rows(path, columns, [*optional, AT]):
        file, place = cells.get(AT, (path, line))
        yield Row(
            Path(file), place, {name: value for name, value in cells.items() if name != AT} if AT in cells else cells
        )
    if not line:
        raise DataError(f"{path}: there are no rows in the file; it needs at least one")


def decoded(lines: Iterable[bytes], path: Path = STANDARD_INPUT) -> Iterator[str]:
    """Give the lines of a stream of bytes as text; a byte order mark at the start is dropped.

    Raises:
        DataError: a line is not UTF-8.
    """
    for number, line in enumerate(lines, start=1):
        if b"\0" in line:
            raise at(path, number, "a NUL byte; no text has one, is this UTF-16?")
        try:
            text = line.decode()
            yield text.removeprefix("\ufeff") if number == 1 else text
        except UnicodeDecodeError as error:
            raise at(path, number, f"byte {error.start + 1} of this line is not UTF-8; decode it anew") from None


def line_rows(
    lines: Iterable[str], columns: Sequence[str], optional: Sequence[str] = (), path: Path = STANDARD_INPUT
) -> Iterator[Row]:
    """Give a row for each line of text: a JSON object, or the columns in this order with tabs between them.

    A line that begins with ``{`` is taken for JSON. Lines are read when their rows are asked for.

    Raises:
        DataError: a line has not as many cells as there are columns, or is broken JSON.
    """
    for number, line in enumerate(lines, start=1):
        text = line.rstrip("\r\n")
        yield Row(path, number, _cells(path, number, text, columns, optional))


def _cells(path: Path, number: int, text: str, columns: Sequence[str], optional: Sequence[str]) -> dict[str, Any]:
    if text.startswith("{"):
        return _object(path, number, text, columns)
    cells = text.split("\t")
    names = [*columns, *optional]
    if not len(columns) <= len(cells) <= len(names):
        wanted = " and ".join(columns) + "".join(f" (and {name})" for name in optional)
        raise at(path, number, f"{len(cells)} cells with tabs between them; this model reads {wanted}")
    return dict(zip(names, cells, strict=False))  # optional ones may be missing


def _object(path: Path, number: int, text: str, columns: Sequence[str]) -> dict[str, Any]:
    try:
        cells = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise at(path, number, f"begins with '{{' and is no JSON object ({error}); write it as {{...}}") from None
    missing = [name for name in columns if name not in cells]
    if missing:
        raise at(path, number, f"there is no {missing[0]!r} in this object; it has {listed(cells)}")
    return dict(cells)
