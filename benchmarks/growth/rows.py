"""A side: the features of many rows, from opening the cache to the first batch."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.common.worker import Answer, serve
from onion.data import Loader, bucketed
from onion.tasks.batches import batch_of
from onion.tasks.data.features.store import open_store

BATCH = 32


def prepare(job: Mapping[str, Any]) -> Callable[[], Answer]:
    """Go through it all once with few rows.

    Args:
        job: ``folder`` of the store, ``warm``: that of a small one.
    """
    first_batch(Path(job["warm"]))

    def work() -> Answer:
        """Return seconds, and what memory of its own the process has then, and had at most."""
        before = own_memory()
        told = first_batch(Path(job["folder"]))
        peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {**told, "own": told["own"] - before, "peak": peak}

    return work


def first_batch(folder: Path) -> Answer:
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


if __name__ == "__main__":
    serve(prepare)
