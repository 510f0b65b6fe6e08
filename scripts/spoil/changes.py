"""Ways to spoil a file, in an order that is drawn: each way comes before any comes a second time.

bytes    ignore what a file means: (draw, content) -> content
cells    write other rows, columns and values: (draw, records, ending) -> content
places   put something else at its path, or change the path: (path, content) -> path
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import zlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import attrs

from scripts.spoil.files import JSON, TABLES, TASKS, Record, endings, good_records, table, whole, written

ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "utf-7", "latin-1", "gb18030", "cp1252", "shift-jis")
LINE_ENDS = (b"\r", b"\r\n", b"\n\n", b"\n\r", b"\x0b", b"\x0c", b"\xc2\x85", b"\xe2\x80\xa8", b"\0")
ESCAPES = (b"\x1b[2J", b"\x1b]0;owned\x07", b"\x08" * 9, b"\xc2\x9b31m", b"\xe2\x80\xae", b"\x7f", b"\r")
BOM = b"\xef\xbb\xbf"
HEADS = (
    b"\x89PNG\r\n\x1a\n",
    b"PK\x03\x04",
    b"%PDF-1.7\n",
    b"\x7fELF",
    b"\x80\x04\x95",
    b"<html>",
    b"#!/bin/sh\nexit\n",
)
LONG_LINE_BYTES = 1 << 18
OVERLONG_LINE_BYTES = (1 << 26) + 1
"""More than a line may have."""

Ways = dict[str, Callable[..., Any]]


def _named(*ways: Callable[..., Any]) -> Ways:
    return {way.__name__.replace("_", " "): way for way in ways}


def flipped(draw: Random, content: bytes) -> bytes:
    found = bytearray(content)
    for _ in range(draw.randrange(1, 9)):
        found[draw.randrange(len(found))] ^= 1 << draw.randrange(8)
    return bytes(found)


def encoded(draw: Random, content: bytes) -> bytes:
    text = content.decode(errors="replace").replace("a", "über", 3)
    return text.encode(draw.choice(ENCODINGS), errors="replace")


def marked(draw: Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    for _ in range(draw.randrange(1, 4)):
        place = draw.choice([0, draw.randrange(len(lines))])
        lines[place] = BOM * draw.randrange(1, 3) + lines[place]
    return b"".join(lines)


def inserted(draw: Random, content: bytes) -> bytes:
    for _ in range(draw.randrange(1, 6)):
        place = draw.randrange(len(content))
        content = content[:place] + draw.choice([*ESCAPES, b"\0", b"\xff", b"\xed\xa0\xbd"]) + content[place:]
    return content


def ended_otherwise(draw: Random, content: bytes) -> bytes:
    ends = draw.sample(LINE_ENDS, 2)
    return b"".join(line + draw.choice([b"\n", *ends]) for line in content.splitlines())


def long_line(draw: Random, content: bytes) -> bytes:
    piece = draw.choice([b"a", b"film ", b"\t", b",", b'"', b"[", b" ", "中".encode(), b"e\xcc\x81", b"{"])
    place = draw.choice([draw.randrange(len(content)), len(content)])
    return content[:place] + piece * (LONG_LINE_BYTES // len(piece)) + content[place:]


def shuffled(draw: Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    draw.shuffle(lines)
    return b"".join(lines)


def blank_lines(draw: Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True)
    for _ in range(draw.randrange(1, 4)):
        lines.insert(draw.randrange(len(lines)), draw.choice([b"\n", b" \n", b"\t\n", b"\r\n"]))
    return b"".join(lines)


def another_kind(draw: Random, content: bytes) -> bytes:
    packed = [gzip.compress(content, mtime=0), zlib.compress(content)]
    return draw.choice([*packed, *(head + content for head in HEADS)])


BYTES: Ways = {
    "cut": lambda draw, content: content[: draw.randrange(len(content))],
    "without line ends": lambda draw, content: content.replace(b"\n", b" "),
    "doubled": lambda draw, content: content * 2,
    "noise": lambda draw, content: draw.randbytes(draw.choice([1, 10, 1000, 100_000])),
    "nothing": lambda draw, content: draw.choice([b"", b"\n", b" ", b"\r\n\r\n", BOM, b"\t\t\n", b"\0"]),
    "first line": lambda draw, content: content.splitlines(keepends=True)[0],
    **_named(flipped, encoded, marked, inserted, ended_otherwise, long_line, shuffled, blank_lines, another_kind),
}
FILES_PER_OVERLONG_LINE = 40
"""An overlong line takes a second, so it comes only once in that many files."""


def overlong_line(draw: Random, content: bytes) -> bytes:
    """Add a line that is longer than any may be."""
    return content + bytes([draw.choice(b"a[ ")]) * OVERLONG_LINE_BYTES


TEXTS = (
    "", " ", "\ufeff", "\u200b\u200d", "\x1b[2J", "nan", "NaN", "inf", "-1", "1e999", "1_000", "0x1", "None", "true",
    "[SEP]", "[MASK] [MASK]", "\2", "a\2b", "\2\2", "O\2O\2O", "I-x", "B-", ",", ",,", "x,,y", "a\tb", "a\nb", '"',
    "\ud83d", "🤷🏽‍♀️", "e" + "\u0301" * 3000, "\u202eabc", "中" * 5000, "film " * 5000, "9" * 5000, "q" * 70_000,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**30, 1e300, float("nan"), float("inf"), [], {}, [[]], [None], {"a": 1},
    ["x", "y"], ["x", 5], [["O"]], {"text": "a", "answer_start": 0}, [{"text": "", "answer_start": 0}],
)  # fmt: skip
MANY_COLUMNS = 20_000
DEEPEST = 100_000


def other_values(draw: Random, records: list[Record], ending: str) -> bytes:
    """Put anything in the place of a value."""
    for _ in range(draw.randrange(1, 5)):
        record = draw.choice(records)
        record[draw.choice(list(record))] = draw.choice(_values(ending))
    return written(records, ending)


def other_values_everywhere(draw: Random, records: list[Record], ending: str) -> bytes:
    name, value = draw.choice(list(records[0])), draw.choice(_values(ending))
    return written([{**record, name: value} for record in records], ending)


def missing(draw: Random, records: list[Record], ending: str) -> bytes:
    name = draw.choice(list(records[0]))
    for record in draw.choice([records, records[-1:], records[:1]]):
        record.pop(name)
    return written(records, ending)


def renamed(draw: Random, records: list[Record], ending: str) -> bytes:
    name = draw.choice(list(records[0]))
    other = draw.choice([name.upper(), f" {name}", f"\ufeff{name}", f"{name}\x1b[31m", "", "x" * 9999, "text_b_neg"])
    return written([{other if key == name else key: record[key] for key in record} for record in records], ending)


def more_columns(draw: Random, records: list[Record], ending: str) -> bytes:
    """Add columns: those that others have, or a great many."""
    count = draw.choice([1, 3, MANY_COLUMNS])
    names = (
        ["text_b", "text_b_neg", "qid", "label"][:count]
        if count < MANY_COLUMNS
        else [f"c{each}" for each in range(MANY_COLUMNS)]
    )
    few = records[:3] if count == MANY_COLUMNS else records
    return written([{**dict.fromkeys(names, "1"), **record} for record in few], ending)


def twice(draw: Random, records: list[Record], ending: str) -> bytes:
    if ending in JSON:
        return written(records, ending).replace(b'"', b'"label": 1, "label": 2, "', 1)
    names = [*records[0], draw.choice(list(records[0]))]
    return table([names, *([str(record[name]) for name in names] for record in records)], ending)


def ragged(draw: Random, records: list[Record], ending: str) -> bytes:
    rows = [list(records[0]), *([str(value) for value in record.values()] for record in records)]
    for _ in range(draw.randrange(1, 4)):
        row = draw.choice(rows)
        row.append("more") if draw.random() < 0.5 or not row else row.pop()
    return table([row or ["x"] for row in rows], ending)


def alike(draw: Random, records: list[Record], ending: str) -> bytes:
    return written([draw.choice(records)] * draw.choice([1, 2, 50]), ending)


def all_different(draw: Random, records: list[Record], ending: str) -> bytes:
    return written([{**record, "label": f"l{number}"} for number, record in enumerate(records * 20)], ending)


def deep(draw: Random, records: list[Record], ending: str) -> bytes:
    depth = draw.choice([50, 500, 900, 2000, DEEPEST])
    opened, closed = draw.choice([("[", "]"), ('{"a":', "}")])
    value = opened * depth + "1" + closed * depth
    name = draw.choice(list(records[0]))
    marked = written([{**records[0], name: "HERE"}, *records[1:]], ending)
    return marked.replace(b'"HERE"' if ending in JSON else b"HERE", value.encode())


def broken_json(draw: Random, records: list[Record], ending: str) -> bytes:
    lines = written(records, ".json" if ending == ".json" else ".jsonl").decode().splitlines()
    place = draw.randrange(len(lines))
    line = lines[place]
    lines[place] = draw.choice(
        [line[:-1], line + "}", f"[{line}]", line.replace('"', "'"), line.replace(":", ",", 1), line + line, "null",
         line.replace("}", ",}"), "// " + line, line.replace('"', '"\\ud800', 1), line.replace('"', '"\\x', 1)]
    )  # fmt: skip
    return "\n".join(lines).encode()


def odd_structure(draw: Random, records: list[Record], ending: str) -> bytes:
    """Put anything anywhere into a structure of JSON, or take a part out of it."""
    structure: Any = whole(records) if ending == ".json" else records
    for _ in range(draw.randrange(1, 4)):
        holder, key = draw.choice(list(_holders(structure)))
        if draw.random() < 0.3:
            del holder[key]
        else:
            holder[key] = draw.choice([*TEXTS, *VALUES])
        if not structure:
            break
    if ending == ".json":
        return json.dumps(structure).encode()
    return "".join(f"{json.dumps(each)}\n" for each in structure).encode()


def _holders(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place in a structure: what holds it, and its key."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    for key in keys:
        yield value, key
        yield from _holders(value[key])


def _values(ending: str) -> list[Any]:
    return [*TEXTS, *VALUES] if ending in JSON else list(TEXTS)


CELLS: Ways = _named(
    other_values, other_values_everywhere, missing, renamed, more_columns, twice, ragged, alike, all_different, deep,
    broken_json, odd_structure,
)  # fmt: skip


def socket_file(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path has a hundred bytes at most
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def below_a_file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path / path.name


def long_name(path: Path, content: bytes) -> Path:
    """A name that no file system takes."""
    return path.with_name("x" * 300 + path.suffix)


def strange_name(path: Path, content: bytes) -> Path:
    """A file whose name moves a terminal, with a byte in it that is reported with the name."""
    strange = path.with_name(f"a\x1b[2J\ufeff {path.name}")
    strange.write_bytes(content + b"\xff")
    return strange


def without_ending(path: Path, content: bytes) -> Path:
    path.with_suffix("").write_bytes(content)
    return path.with_suffix("")


def another_ending(path: Path, content: bytes) -> Path:
    endings = [*TABLES, ".txt", ".conll"]
    other = path.with_suffix(endings[(endings.index(path.suffix) + 1) % len(endings)])
    other.write_bytes(content)
    return other


def several_files(path: Path, content: bytes) -> Path:
    """A pattern for two files, one of which is cut."""
    path.write_bytes(content)
    path.with_stem("more").write_bytes(content[: 2 * len(content) // 3])
    return path.with_stem("*")


def no_file_of_a_pattern(path: Path, content: bytes) -> Path:
    return path.with_stem("[0-9]*")


def names_with_a_gap(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return Path(f"{path},,{path}")


def unreadable(path: Path, content: bytes) -> Path:
    """A file without permissions, which root can read all the same."""
    path.write_bytes(content)
    path.chmod(0)
    return path


def _instead(make: Callable[[Path], object]) -> Callable[[Path, bytes], Path]:
    """Return a way that makes something at the path itself, whatever the content."""

    def way(path: Path, content: bytes) -> Path:
        make(path)
        return path

    return way


PLACES: Ways = {
    "pipe": _instead(os.mkfifo),
    "folder": _instead(Path.mkdir),
    "endless device": _instead(lambda path: path.symlink_to("/dev/zero")),
    "empty device": _instead(lambda path: path.symlink_to("/dev/null")),
    "dangling link": _instead(lambda path: path.symlink_to(path.with_name("nowhere"))),
    "loop": _instead(lambda path: path.symlink_to(path)),
    "socket": _instead(socket_file),
    "absent": _instead(lambda path: None),
    **_named(unreadable, below_a_file, long_name, strange_name, without_ending, another_ending),
    **_named(several_files, no_file_of_a_pattern, names_with_a_gap),
}

WAYS = {"bytes": BYTES, "cells": CELLS, "places": PLACES}
ROUND = [(kind, name) for kind, ways in WAYS.items() for name in ways]
ROUND += [("cells", "other values"), ("cells", "odd structure")]
"""What comes in each round: the two ways with the most variety twice."""


@attrs.frozen
class Spoilt:
    """A spoilt file, or what is in its place: of which task, and by which way."""

    task: str
    way: str
    path: Path


def spoilt_files(folder: Path, seed: int) -> Iterator[Spoilt]:
    """Put spoilt files into an empty folder, one by one and without end; the same ones for a seed."""
    draw = Random(seed)
    order = ROUND.copy()
    for number in count():
        if number % len(order) == 0:
            draw.shuffle(order)
        kind, name = order[number % len(order)]
        way = WAYS[kind][name]
        if number % FILES_PER_OVERLONG_LINE == FILES_PER_OVERLONG_LINE - 1:
            kind, name, way = "bytes", "overlong line", overlong_line
        task = TASKS[number % len(TASKS)]
        ending = draw.choice(endings(task))
        room = folder / f"{number}"
        room.mkdir()
        path, records = room / f"data{ending}", good_records(task, draw)
        if kind == "places":
            path = way(path, written(records, ending))
        elif kind == "cells":
            path.write_bytes(way(draw, records, ending))
        else:
            path.write_bytes(way(draw, written(records, ending)))
        yield Spoilt(task, name, path)
