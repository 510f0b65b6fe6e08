"""Rows of text files, read one by one; each knows its file and line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from onion.data.files import FORMATS, MissingColumnError, iter_rows
from onion.data.table import at
from onion.errors import DataError
from onion.messages import listed, shown
from onion.tasks.data.conll import ENDINGS

STANDARD_INPUT = Path("standard input")

NAMED = ("text_a", "text_b", "text_b_neg", "label")
"""Columns of tasks, which ``--columns`` maps to those of a file."""

AT = "@at"
"""The column of a converted file (``onion.tasks.data.prepared``) with the file and line that a row came from."""


@attrs.frozen
class Row:
    """A row of a file.

    Attributes:
        path: the file.
        line: its first line, counted from 1.
        cells: column -> value, a string except in JSON.

    Raises:
        DataError: by the methods, if a cell has another type, no text or an unpaired surrogate; with file and line.
    """

    path: Path
    line: int
    cells: Mapping[str, Any]

    def error(self, what: str) -> DataError:
        """Return an error with the place of the row: ``path:line: what``."""
        return at(self.path, self.line, what)

    def text(self, column: str) -> str:
        """Return a cell that must be a string."""
        value = self.cells[column]
        if value is None:
            raise self.error(f"{column} is empty (null); fill it in or remove the row")
        if not isinstance(value, str):
            raise self.error(f"{column} is {shown(value)}, not a string; put it in quotes")
        if holds_half_a_character(value):
            raise self.error(f"{column} has an unpaired surrogate (\\ud800 to \\udfff); correct the text")
        return value

    def word(self, column: str) -> str:
        """Return a cell that is a string or, in JSON, a number; ``2`` and ``2.0`` become ``"2"``."""
        value = self.cells[column]
        if isinstance(value, float) and not math.isfinite(value):  # Python reads and writes NaN and Infinity
            raise self.error(f"{column} is {value}, which is not a JSON number; correct the value")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(int(value) if isinstance(value, float) and value.is_integer() else value)
        return self.text(column)

    def label(self, column: str) -> str:
        """Return a word without surrounding whitespace."""
        word = self.word(column).strip()
        if not word:
            raise self.error(f"{column} is empty; fill it in or remove the row")
        return word

    def number(self, column: str) -> float:
        """Return a cell that must be a finite number."""
        word = self.word(column)
        try:
            value = float("nan" if "_" in word else word)  # Python accepts 1_000
        except ValueError:
            value = float("nan")
        if not abs(value) < float("inf"):
            raise self.error(f"{column} is {shown(word)}, not a number")
        return value


def holds_half_a_character(text: str) -> bool:
    """Tell whether a text has an unpaired surrogate, which JSON escapes can write but no encoding can."""
    return not text.isascii() and text.encode(errors="ignore").decode() != text


def file_rows(path: str | Path, columns: Sequence[str], optional: Sequence[str] = ()) -> Iterator[Row]:
    """Yield the rows of a file (see ``onion.data.files.iter_rows`` for the formats), one in memory at a time.

    Raises:
        DataError: the file is invalid or has no rows; file and line are named.
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise unknown_format(path)
    line = 0
    # Of JSON lines, which may be converted, missing columns are told here: by the file and line they came from.
    is_json = path.suffix.lower() == ".jsonl"
    wanted = [*columns, *optional]
    for line, found in iter_rows(path) if is_json else _under_header(path, columns, optional):
        file, place, cells = path, line, found
        if is_json:
            file, place = _origin(found.get(AT), path, line)
            cells = {name: value for name, value in found.items() if name != AT}
            missing = [name for name in columns if name not in cells]
            if missing:
                raise at(file, place, _missing(missing[0], cells))
            if wanted:
                cells = {name: cells[name] for name in wanted if name in cells}
        yield Row(file, place, cells)
    if not line:
        raise DataError(f"{path}: there are no rows in the file; it needs at least one")


def _under_header(path: Path, columns: Sequence[str], optional: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield what ``iter_rows`` does; say how a column is named that the header lacks."""
    try:
        yield from iter_rows(path, columns, optional)
    except MissingColumnError as error:
        raise DataError(f"{error}{_remedy(error.name)}") from None


def unknown_format(path: str | Path) -> DataError:
    """Return the error for a file whose ending is none of those that are read as rows, converted ones included."""
    known = ", ".join([*FORMATS, ".json", ".parquet", *ENDINGS])
    return DataError(f"{path}: cannot tell the format by the ending; name the file {known}")


def _missing(name: str, cells: Mapping[str, Any]) -> str:
    told = f"there is no {name!r} in this object; it has {listed(cells)}"
    return told + _remedy(name)


def _remedy(name: str) -> str:
    return f"; if the column has another name: --columns {name}=NAME" if name in NAMED else ""


def _origin(noted: Any, path: Path, line: int) -> tuple[Path, int]:
    """Return the file and line of a converted row; those of the row itself, where a file has a column of that name."""
    if isinstance(noted, list) and len(noted) == 2 and isinstance(noted[0], str) and isinstance(noted[1], int):
        return Path(noted[0]), noted[1]
    return path, line


def decoded(lines: Iterable[bytes], path: Path = STANDARD_INPUT) -> Iterator[str]:
    """Yield the lines of a byte stream as text, without a byte order mark.

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
            raise at(path, number, f"byte {error.start + 1} of this line is not UTF-8; convert it") from None


def line_rows(
    lines: Iterable[str], columns: Sequence[str], optional: Sequence[str] = (), path: Path = STANDARD_INPUT
) -> Iterator[Row]:
    """Yield a row for each line of text: a JSON object, or tab-separated columns in this order.

    A line that starts with ``{`` is read as JSON. Lines are read on demand.

    Raises:
        DataError: a line has the wrong number of cells, or is invalid JSON.
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
        raise at(path, number, f"{len(cells)} tab-separated cells; this model reads {wanted}")
    return dict(zip(names, cells, strict=False))  # optional ones may be missing


def _object(path: Path, number: int, text: str, columns: Sequence[str]) -> dict[str, Any]:
    try:
        cells = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise at(path, number, f"starts with '{{' but is not a JSON object ({error}); correct it") from None
    missing = [name for name in columns if name not in cells]
    if missing:
        raise at(path, number, f"there is no {missing[0]!r} in this object; it has {listed(cells)}")
    return dict(cells)
