"""A side: the features of many rows, which are made up, from opening the cache to the first batch."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from onion.data import Loader, bucketed
from onion.tasks.batches import batch_of
from onion.tasks.data.features.examples import Example
from onion.tasks.data.features.store import open_store, write_store

BATCH = 32
CHUNK = 10_000
SHORT, LONG = 4, 12


def prepare(job: Mapping[str, Any]) -> Callable[[], dict[str, float]]:
    """Run it once with few rows (``warm``), for a job about the store in ``folder``."""
    first_batch(Path(job["warm"]))

    def work() -> dict[str, float]:
        """Return seconds, and what memory of its own the process has then, and had at most."""
        before = own_memory()
        told = first_batch(Path(job["folder"]))
        peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {**told, "own": told["own"] - before, "peak": peak}

    return work


def first_batch(folder: Path) -> dict[str, float]:
    """Open a store, draw the first batch of a shuffled pass; then measure an order alone."""
    begun = perf_counter()
    examples = open_store(folder)
    assert examples is not None
    lengths = examples.lengths
    loader = Loader(examples, BATCH, shuffle=True, lengths=lengths, collate=batch_of)
    batches = loader.batches(0)
    next(batches)
    first = perf_counter() - begun
    own = own_memory()
    batches.close()
    begun = perf_counter()
    bucketed(lengths, BATCH, 0, 1)
    return {"first": first, "order": perf_counter() - begun, "own": own}


def own_memory() -> int:
    """Return the bytes of this process that are not of files: those of mapped files can be dropped at any time."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines())
    return 1024 * int(fields["RssAnon"].split()[0])


def write_rows(folder: Path, rows: int) -> Path:
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
