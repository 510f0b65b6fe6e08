"""Cached features of any number of rows, made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from onion.tasks.data.features.examples import Example
from onion.tasks.data.features.store import write_store

CHUNK = 10_000
SHORT, LONG = 4, 12


def make(folder: Path, rows: int) -> Path:
    """Write a store of so many rows, of 4 to 12 tokens each; return its folder, which is new."""
    folder.mkdir()
    write_store(folder, _chunks(rows), Counter())
    return folder


def _chunks(rows: int) -> Iterator[list[Example]]:
    random = np.random.default_rng(0)
    for start in range(0, rows, CHUNK):
        count = min(CHUNK, rows - start)
        ids = random.integers(1000, 30000, size=(count, LONG), dtype=np.int32)
        types = np.zeros(LONG, np.int32)
        lengths = random.integers(SHORT, LONG + 1, size=count).tolist()
        yield [
            {"row": start + place, "ids": ids[place, :length], "types": types[:length], "label": place % 2}
            for place, length in enumerate(lengths)
        ]
