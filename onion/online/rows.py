"""The rows of a record as they stand in its file."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeAlias

from onion.errors import DataError
from onion.online.desk import Answer
from onion.validation import is_whole

Row: TypeAlias = dict[str, Any]

KEYS = 10_000
"""How many of the latest commands are known again by their keys."""


def whole_size(path: Path) -> int:
    """Return the bytes of a file up to the end of its last whole line; 0 where there is none."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        end = file.seek(0, 2)
        while end > 0:
            begin = max(0, end - 4096)
            file.seek(begin)
            found = file.read(end - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
    return 0


def rows_of(path: Path, size: int) -> Iterator[tuple[int, Row]]:
    """Give the rows of the first bytes of a file, each with the place where it ends.

    Raises:
        DataError: a line is no row.
    """
    if not size:
        return
    place = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            place += len(line)
            if place > size:
                return
            yield place, _parsed(line, f"{path}, line {number}")


def _parsed(line: bytes, where: str) -> Row:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{where}: this is no row of a record ({error}); put the file back as the run wrote it."
        ) from None
    if not _is_row(row):
        raise DataError(f"{where}: this is no row of a record; put the file back as the run wrote it.")
    return dict(row)


def _is_row(row: Any) -> bool:
    """Tell whether a JSON value is a row of one of the kinds that ``record.py`` lists."""
    if not isinstance(row, dict):
        return False
    if "answer" in row:
        told = {"command", "step", "result", "error", "key"} <= row.keys()
        return told and is_whole(row["answer"]) and _is_key(row["key"])
    if not is_whole(row.get("batch")) or row["batch"] < 0:
        return False
    if "command" in row:
        whole = is_whole(row.get("number")) and is_whole(row.get("step"))
        named = isinstance(row["command"], str) and isinstance(row.get("arguments"), dict)
        return whole and named and _is_key(row.get("key"))
    return row.get("pass_end") is True or any(
        is_whole(row.get(each)) and row[each] > 0 for each in ("samples", "skipped")
    )


def _is_key(key: object) -> bool:
    return key is None or isinstance(key, str)


class Answers:
    """The latest commands that have a key, with their answers, there or to come.

    Attributes:
        number: Of the last command.
    """

    def __init__(self) -> None:
        self.number = 0
        self._by_key: OrderedDict[str, Future[Answer]] = OrderedDict()
        self._asked: dict[str, tuple[str, dict[str, Any]]] = {}
        self._rows: dict[str, Row] = {}
        self._given: set[int] = set()

    def take(self, row: Row) -> None:
        """Take in a row that was written before."""
        if "command" in row and "number" in row:
            self.number = row["number"]
            if row["key"] is not None:
                self.expect(row["key"], row["command"], row["arguments"])
                self._rows[row["key"]] = row
        elif "answer" in row:
            self._given.add(row["answer"])
            if row["key"] in self._by_key:
                answer = Answer(row["answer"], row["command"], row["step"], row["result"], row["error"])
                self._by_key[row["key"]].set_result(answer)

    def close(self, to_come: Iterable[int]) -> None:
        """Answer the commands that took effect, and whose answer a kill has cut off; not those yet to come."""
        waiting = set(to_come)
        for key, row in self._rows.items():
            future = self._by_key.get(key)
            if future is not None and not future.done() and row["number"] not in waiting:
                future.set_result(Answer(row["number"], row["command"], row["step"]))
        self._rows.clear()
        self._given &= waiting

    def given(self, number: int) -> bool:
        """Tell whether the answer of a command that is carried out again was written before."""
        return number in self._given

    def of(self, key: str | None) -> Future[Answer] | None:
        """Return the answer of a command with this key, there or to come."""
        return None if key is None else self._by_key.get(key)

    def expect(self, key: str | None, command: str, arguments: Mapping[str, Any]) -> Future[Answer]:
        """Return the answer to come of a new command, and remember it by its key."""
        future: Future[Answer] = Future()
        if key is not None:
            self._by_key[key], self._asked[key] = future, (command, dict(arguments))
            if len(self._by_key) > KEYS:
                oldest, _ = self._by_key.popitem(last=False)
                del self._asked[oldest]
        return future

    def is_same(self, key: str | None, command: str, arguments: Mapping[str, Any]) -> bool:
        """Tell whether the command that had this key first is this one."""
        return key is not None and self._asked[key] == (command, dict(arguments))
