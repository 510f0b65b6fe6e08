"""The onion with ten more items, all between their periods: what a training has around it, and four observers."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.loop.engines.on_onion import Fields, network, ready, trained
from benchmarks.loop.work import Parameters
from onion import DataProvider, EarlyStopping, Evaluator, Forward, Logger, Observer, Progress, Runner, Saver, Tester

__all__ = ["LIBRARIES", "ready", "train"]

LIBRARIES = ("paddlepaddle",)
NEVER = 10**9


class Count:
    """The cheapest metric: it counts batches and reads nothing."""

    def reset(self) -> None:
        """Begin at 0."""
        self.count = 0

    def update(self, outputs: Any, batch: Any) -> None:
        """Count one."""
        self.count += 1

    def result(self) -> dict[str, float]:
        """Return the count."""
        return {"batches": self.count}


def train(batches: list[Fields], callbacks: int = 0) -> Parameters:
    """Train."""
    layer = network()
    with tempfile.TemporaryDirectory() as folder:
        return trained(
            batches,
            layer,
            Progress(seconds=NEVER, file=io.StringIO(), lines=False),
            Saver(folder, every=NEVER),
            Logger(Path(folder) / "metrics.jsonl", every=NEVER),
            EarlyStopping("tester.accuracy"),
            Tester(Runner(DataProvider(batches[:1], 1, prefetch=0), Forward(layer)), every=NEVER),
            Evaluator(Count()),
            Observer(on_batch_begin=lambda state: None),
            Observer(on_batch_end=lambda state: None),
            Observer(on_batch_begin=lambda state: None, on_batch_end=lambda state: None),
            Observer(on_pass_begin=lambda state: None, on_batch_end=lambda state: None),
        )
