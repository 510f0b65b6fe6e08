"""A side: features from the cache, as a training reads them: through the DataProvider that it has, collated."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.common.worker import Answer, serve
from benchmarks.data.training import settings_of
from onion import DataProvider, Runner, RunnerItem
from onion.engine.state import State
from onion.tasks.finetune.fine_tune import Job


class Count(RunnerItem):
    """Count tokens, and note which examples came."""

    def __init__(self) -> None:
        self.tokens = 0
        self.places: list[int] = []

    def on_batch(self, state: State) -> None:
        """Add those of the batch."""
        self.tokens += sum(state.batch["lengths"])
        self.places += state.batch["places"]


def prepare(job: Mapping[str, Any]) -> Callable[[], Answer]:
    """Open the cache; the job is that of ``training``."""
    ready = Job.prepare(settings_of(job))
    with tempfile.TemporaryDirectory() as room:
        provider = ready.onion(Path(room))[DataProvider]
    lengths = ready.train_set.lengths

    def work() -> Answer:
        """Read a pass; return tokens a second.

        Raises:
            SystemExit: not every example came, or not once.
        """
        count = Count()
        begun = perf_counter()
        Runner(provider, count).run(passes=1)
        seconds = perf_counter() - begun
        if sorted(count.places) != list(range(len(lengths))) or count.tokens != lengths.sum():
            raise SystemExit("a pass did not bring every example once: no times")
        return {"tokens": count.tokens / seconds}

    return work


if __name__ == "__main__":
    serve(prepare, ("paddlepaddle",))
