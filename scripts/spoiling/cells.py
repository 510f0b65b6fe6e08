"""Ways to spoil a file that write other rows, columns and values: (draw, records, ending) -> content."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from spoiling.tables import Record, squad, table, written

Spoil = Callable[[Random, list[Record], str], bytes]

TEXTS = (
    "", " ", "\ufeff", "\u200b\u200d", "\x1b[2J", "nan", "NaN", "inf", "-1", "1e999", "1_000", "0x1", "None", "true",
    "[SEP]", "[MASK] [MASK]", "\2", "a\2b", "\2\2", "O\2O\2O", "I-x", "B-", ",", ",,", "x,,y", "a\tb", "a\nb", '"',
    "\ud83d", "🤷🏽‍♀️", "e" + "\u0301" * 3000, "\u202eabc", "中" * 5000, "film " * 5000, "9" * 5000, "q" * 70_000,
)  # fmt: skip
VALUES = (
    None, True, False, 0, -1, 1.5, 10**30, 1e300, float("nan"), float("inf"), [], {}, [[]], [None], {"a": 1},
    ["x", "y"], ["x", 5], [["O"]], {"text": "a", "answer_start": 0}, [{"text": "", "answer_start": 0}],
)  # fmt: skip
MANY = 20_000
DEEP = 100_000


def other_values(draw: Random, records: list[Record], ending: str) -> bytes:
    """Put anything where a value stands."""
    for _ in range(draw.randrange(1, 5)):
        record = draw.choice(records)
        record[draw.choice(list(record))] = draw.choice(_values(ending))
    return written(records, ending)


def other_values_everywhere(draw: Random, records: list[Record], ending: str) -> bytes:
    """Put the same into a whole column."""
    name, value = draw.choice(list(records[0])), draw.choice(_values(ending))
    return written([{**record, name: value} for record in records], ending)


def missing(draw: Random, records: list[Record], ending: str) -> bytes:
    """Leave columns out, of all rows or of one."""
    name = draw.choice(list(records[0]))
    for record in draw.choice([records, records[-1:], records[:1]]):
        record.pop(name)
    return written(records, ending)


def renamed(draw: Random, records: list[Record], ending: str) -> bytes:
    """Call a column something else."""
    name = draw.choice(list(records[0]))
    other = draw.choice([name.upper(), f" {name}", f"\ufeff{name}", f"{name}\x1b[31m", "", "x" * 9999, "text_b_neg"])
    return written([{other if key == name else key: record[key] for key in record} for record in records], ending)


def more_columns(draw: Random, records: list[Record], ending: str) -> bytes:
    """Add columns: those that others have, or a great many."""
    count = draw.choice([1, 3, MANY])
    names = ["text_b", "text_b_neg", "qid", "label"][:count] if count < MANY else [f"c{each}" for each in range(MANY)]
    few = records[:3] if count == MANY else records
    return written([{**dict.fromkeys(names, "1"), **record} for record in few], ending)


def twice(draw: Random, records: list[Record], ending: str) -> bytes:
    """Name a column twice, or, of JSON, a key."""
    if ending in (".json", ".jsonl"):
        return written(records, ending).replace(b'"', b'"label": 1, "label": 2, "', 1)
    names = [*records[0], draw.choice(list(records[0]))]
    return table([names, *([str(record[name]) for name in names] for record in records)], ending)


def ragged(draw: Random, records: list[Record], ending: str) -> bytes:
    """Have more or fewer cells in some rows."""
    rows = [list(records[0]), *([str(value) for value in record.values()] for record in records)]
    for _ in range(draw.randrange(1, 4)):
        row = draw.choice(rows)
        row.append("more") if draw.random() < 0.5 else row.pop()
    return table([row or ["x"] for row in rows], ending)


def alike(draw: Random, records: list[Record], ending: str) -> bytes:
    """Have the same row many times, or one row."""
    return written([draw.choice(records)] * draw.choice([1, 2, 50]), ending)


def all_different(draw: Random, records: list[Record], ending: str) -> bytes:
    """Have a label of its own in every row."""
    return written([{**record, "label": f"l{number}"} for number, record in enumerate(records * 20)], ending)


def deep(draw: Random, records: list[Record], ending: str) -> bytes:
    """Nest brackets, more or less deep than Python reads."""
    depth = draw.choice([50, 500, 900, 2000, DEEP])
    opened, closed = draw.choice([("[", "]"), ('{"a":', "}")])
    value = opened * depth + "1" + closed * depth
    name = draw.choice(list(records[0]))
    marked = written([{**records[0], name: "HERE"}, *records[1:]], ending)
    return marked.replace(b'"HERE"' if ending in (".json", ".jsonl") else b"HERE", value.encode())


def broken_json(draw: Random, records: list[Record], ending: str) -> bytes:
    """Break the syntax of a line of JSON, or put one into a file that has none."""
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
    whole: Any = squad(records) if ending == ".json" else records
    for _ in range(draw.randrange(1, 4)):
        holder, key = draw.choice(list(_holders(whole)))
        if draw.random() < 0.3:
            del holder[key]
        else:
            holder[key] = draw.choice([*TEXTS, *VALUES])
        if not whole:
            break
    if ending == ".json":
        return json.dumps(whole).encode()
    return "".join(f"{json.dumps(each)}\n" for each in whole).encode()


def _holders(value: Any) -> Iterator[tuple[Any, Any]]:
    """Give every place in a structure: what holds it, and its key."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    for key in keys:
        yield value, key
        yield from _holders(value[key])


def _values(ending: str) -> list[Any]:
    return [*TEXTS, *VALUES] if ending in (".json", ".jsonl") else list(TEXTS)


WAYS: tuple[Spoil, ...] = (
    other_values, other_values, other_values_everywhere, missing, renamed, more_columns, twice, ragged, alike,
    all_different, deep, broken_json, odd_structure, odd_structure,
)  # fmt: skip
