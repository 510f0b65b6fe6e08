"""A process with one engine: it answers with the losses of a few batches, or with how long a training takes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from importlib import import_module

from benchmarks.common.worker import Answer, serve
from benchmarks.finetune.work import Job

LIBRARIES: list[str] = []


def prepare(job: Job) -> Callable[..., Answer]:
    """Load the engine.

    Args:
        job: names its engine.
    """
    engine = import_module(f"benchmarks.finetune.engines.{job['engine']}")
    LIBRARIES.extend(engine.LIBRARIES)

    def work(ask: str) -> Answer:
        gc.collect()  # an optimizer of Paddle's refers to itself: its moments stay until somebody looks for such rings
        return {"costs": engine.losses(job)} if ask == "costs" else dict(engine.train(job))

    return work


if __name__ == "__main__":
    serve(prepare, LIBRARIES)
