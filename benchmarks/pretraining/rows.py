"""The rows that every side reads, and a few masked batches of them, in files of numpy. Nothing else is needed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

IGNORED = -100
"""The label of tokens that are not masked, which cross-entropy ignores in torch and in Paddle."""

INSIDE = 1
"""In ``units``: the token goes on with the word of the token before."""

Row = dict[str, Any]
"""``ids``, ``types`` and ``units``, int64 ``[length]``, with special tokens, whose unit is -1; ``label``, 0 or 1."""

Batch = dict[str, Any]
"""``ids``, ``types``, ``mask`` (1: a token) and ``words`` (IGNORED, or the id that stood there), int64
``[batch, length]``; ``labels``, int64 ``[batch]``."""

FIELDS = ("ids", "types", "mask", "words", "labels")


def write_rows(path: str, rows: Sequence[Row]) -> None:
    flat: Row = {
        name: np.concatenate([row[name] for row in rows]).astype(np.int32) for name in ("ids", "types", "units")
    }
    lengths = np.array([len(row["ids"]) for row in rows])
    np.savez(path, lengths=lengths, labels=np.array([row["label"] for row in rows]), **flat)


def read_rows(path: str) -> list[Row]:
    with np.load(path) as found:
        ends = np.cumsum(found["lengths"])[:-1]
        columns = {name: np.split(found[name].astype(np.int64), ends) for name in ("ids", "types", "units")}
        labels = found["labels"].tolist()
    return [
        dict(zip((*columns, "label"), values, strict=True)) for values in zip(*columns.values(), labels, strict=True)
    ]


def write_batches(path: str, batches: Sequence[Batch]) -> None:
    flat: Batch = {f"{name}.{number}": each[name] for number, each in enumerate(batches) for name in FIELDS}
    np.savez(path, **flat)


def read_batches(path: str) -> list[Batch]:
    with np.load(path) as found:
        return [{name: found[f"{name}.{number}"] for name in FIELDS} for number in range(len(found) // len(FIELDS))]
