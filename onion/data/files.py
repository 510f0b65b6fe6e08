r"""Rows out of files: tab-separated, comma-separated and JSON lines.

`read_rows` and `iter_rows`, and `iter_lines` for plain text, are the only entry points. Any fault of a file is raised
as a `DataError` that reads ``path:line: what was wrong; what to do``, never as another exception.

What the three formats have in common:

* UTF-8 only. A byte order mark at the start is dropped. A line ends with ``\n`` or ``\r\n``.
* Blank lines at the end are dropped; a blank line between rows is an error, since it has the wrong number of columns.
* A NUL byte is an error. No text has one; a file that does is damaged, or is UTF-16.
* A line of more than `MAX_LINE_BYTES` bytes is an error: what has no line ends would fill the memory.
* What may never end or never begin is not opened: a device, or a pipe that has a name. One that the process was started
  with (``/dev/stdin``, or a shell's ``<(...)``) is read, once.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from onion.data.opening import opened
from onion.data.table import ABSENT, Row, Table, at
from onion.errors import DataError
from onion.host.process_limits import Raised
from onion.messages import listed, shown

__all__ = [
    "FORMATS", "JSON_LINES", "Row", "Table", "byte_lines", "gzip_lines", "iter_lines", "iter_rows", "json_objects",
    "read_rows",
]  # fmt: skip

JSON_LINES = ".jsonl"

Record = tuple[int, list[str]]
"""The line a row starts in (the first line of a file is 1), and its cells."""

MAX_CELL_LENGTH = 1 << 26
"""Characters that a cell of a .csv may have; a longer one nearly always is a quote that is never closed."""

CELLS = Raised(csv.field_size_limit, csv.field_size_limit)
"""The longest cell that Python's csv reads, a setting of the whole process; by default 128 KiB."""

MAX_LINE_BYTES = 1 << 26
"""Bytes that a line may have."""


class MissingColumnError(DataError):
    """A header lacks a wanted column.

    Attributes:
        name: The column.
    """

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


def read_rows(path: str | os.PathLike[str], columns: Sequence[str] = (), optional: Sequence[str] = ()) -> Table:
    """Read a whole file of rows; its ending says how.

    * ``.tsv``: a header line, then one row a line, cells separated by tabs. No quoting and no escaping at all.
    * ``.csv``: a header line, then rows after RFC 4180. A quoted cell may contain commas, quotes and line breaks.
    * ``.jsonl``: one JSON object a line. Its values are kept as they are; a cell of the other two is always a `str`.

    Args:
        path: The file.
        columns: The columns every row needs, in any order. Others are ignored.
        optional: Columns that are kept where they exist, and are absent from the rows where they do not.
            With neither `columns` nor `optional`, every column is kept.

    Returns:
        The rows, at least one. `Table` tells the line each row came from.

    Raises:
        DataError: The file cannot be read, or is not what its ending says. The message names file and line.
    """
    path = Path(path)
    wanted = tuple(columns), tuple(optional)
    if _format(path) == JSON_LINES:
        table = _json_rows(path, _lines(path), *wanted)
    else:
        names, found = _under_header(path, *wanted)
        lines, cells = [], []
        for number, row in found:
            lines.append(number)
            cells.append(row)
        table = Table(path, names, cells, lines)
    if not len(table):
        raise DataError(f"{path}: there are no rows in the file; it needs at least one")
    return table


def iter_rows(
    path: str | os.PathLike[str], columns: Sequence[str] = (), optional: Sequence[str] = ()
) -> Iterator[tuple[int, Row]]:
    """Give the rows of a file one by one, each with the line it starts in; one is in memory at a time.

    The arguments, the rows and the errors are those of `read_rows`, but a file without rows simply gives none, and an
    error comes when its row does.
    """
    path = Path(path)
    names = (*columns, *optional)
    if _format(path) == JSON_LINES:
        for number, row in json_objects(path, _lines(path), columns):
            yield number, {name: row[name] for name in names if name in row} if names else row
    else:
        kept, found = _under_header(path, tuple(columns), tuple(optional))
        for number, cells in found:
            yield number, dict(zip(kept, cells, strict=True))


def iter_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Give the lines of a plain text one by one, each with its number, from 1, and without its line end.

    A file that ends in ``.gz`` is unpacked as it is read.

    Raises:
        DataError: The file cannot be read, or a line is not UTF-8. The message names file and line.
    """
    for number, line in enumerate(_lines(Path(path)), 1):
        yield number, line.removesuffix("\n").removesuffix("\r")


def _format(path: Path) -> str:
    """The ending of a file, if it is a known one."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise DataError(f"{path}: cannot tell the format by the ending; name the file {', '.join(FORMATS)}")
    return suffix


def byte_lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Give the lines of an open file, each with its line end; `DataError` for one of more than `MAX_LINE_BYTES`."""
    for number, raw in enumerate(iter(partial(file.readline, MAX_LINE_BYTES + 1), b""), 1):
        if len(raw) > MAX_LINE_BYTES:
            mebibytes = MAX_LINE_BYTES >> 20
            raise at(path, number, f"this line has more than {mebibytes} MiB; is this a text, with line ends?")
        yield raw


def gzip_lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Give the lines of an open gzip file, as `byte_lines`; `DataError` where it is damaged."""
    number = 0
    with gzip.GzipFile(fileobj=file) as unpacked:
        try:
            for line in byte_lines(unpacked, path):  # type: ignore[arg-type]
                number += 1
                yield line
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise at(path, number + 1, f"the file is not gzip, or was cut off here ({error}); copy it anew") from error


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file, decoded, each with its line end."""
    with opened(path) as file:
        lines = gzip_lines if path.suffix.lower() == ".gz" else byte_lines
        for number, raw in enumerate(lines(file, path), 1):
            yield _decode(path, number, raw)


def _decode(path: Path, number: int, raw: bytes) -> str:
    if b"\0" in raw:
        raise at(path, number, "a NUL byte; the file is damaged or UTF-16, save it as UTF-8")
    try:
        # Not "utf-8-sig" for the first line: its errors count bytes from behind the mark.
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = f"byte 0x{raw[error.start]:02x} at offset {error.start} of this line is not UTF-8"
        raise at(path, number, f"{bad}; save the file as UTF-8") from None
    return line.removeprefix("\ufeff") if number == 1 else line


def _tsv_records(path: Path, lines: Iterable[str]) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        text = line.removesuffix("\n").removesuffix("\r")
        yield number, text.split("\t") if text else []


def _csv_records(path: Path, lines: Iterable[str]) -> Iterator[Record]:
    reader = csv.reader(lines, strict=True)
    start = 1
    try:
        with CELLS.to(MAX_CELL_LENGTH):
            for cells in reader:
                yield start, cells
                start = reader.line_num + 1
    except csv.Error as error:
        # The row is where a reader has to look, not the line the parser gave up in.
        hint = "check the quotes of this row: each one opened must be closed, and one inside a cell is doubled"
        raise at(path, start, f"broken CSV ({error}); {hint}") from None


def _under_header(
    path: Path, columns: tuple[str, ...], optional: tuple[str, ...]
) -> tuple[list[str], Iterator[tuple[int, tuple[str, ...]]]]:
    """Read a file whose first record names the columns: the names that are kept, and line and cells of each row."""
    records = _RECORDS[_format(path)](path, _lines(path))
    _, header = next(records, (1, []))
    keep = _columns_kept(path, header, columns, optional)

    def rows() -> Iterator[tuple[int, tuple[str, ...]]]:
        for number, record in _without_blank_end(records):
            if len(record) != len(header):
                wrong = f"expected {len(header)} columns, got {len(record)}"
                raise at(path, number, f"{wrong}; fix this row, the header has {listed(header)}")
            yield number, tuple([record[i] for i in keep])

    return [header[i] for i in keep], rows()


def _columns_kept(path: Path, header: list[str], columns: tuple[str, ...], optional: tuple[str, ...]) -> list[int]:
    """The positions of the wanted columns in the header."""
    if not header:
        raise at(path, 1, "there is no header; the first line has to name the columns")
    places = {name: place for place, name in enumerate(header)}
    if len(places) < len(header):
        twice = next(name for name, count in Counter(header).items() if count > 1)
        raise at(path, 1, f"the header has the column {shown(twice)} twice; rename one of them")
    for name in columns:
        if name not in places:
            raise MissingColumnError(f"{path}:1: the header has no column {name!r}; it has {listed(header)}", name)
    if not columns and not optional:
        return list(range(len(header)))
    wanted = dict.fromkeys(columns + optional)
    return [places[name] for name in wanted if name in places]


def _without_blank_end(records: Iterator[Record]) -> Iterator[Record]:
    """All records but the blank ones that nothing follows."""
    blank: list[Record] = []
    for record in records:
        if not record[1]:
            blank.append(record)
            continue
        yield from blank
        blank.clear()
        yield record


def _json_rows(path: Path, lines: Iterator[str], columns: tuple[str, ...], optional: tuple[str, ...]) -> Table:
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
    padded = [row + (ABSENT,) * (len(names) - len(row)) for row in cells] if every else cells
    return Table(path, tuple(names), padded, numbers)


def json_objects(path: Path, lines: Iterable[str], columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Give line number and object, which has the columns, of every line that is not a blank one at the end."""
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


_RECORDS: dict[str, Callable[[Path, Iterable[str]], Iterator[Record]]] = {".tsv": _tsv_records, ".csv": _csv_records}

FORMATS = (*_RECORDS, JSON_LINES)
"""The endings that are known."""
