"""What the sides share: a process with one engine."""

from __future__ import annotations

import gc
from collections.abc import Callable
from importlib import import_module
from typing import Any

Job = dict[str, Any]
"""Of a training: ``engine`` and what that takes besides; ``bert``, the folder of the network as transformers reads it,
``ernie`` as PaddleNLP does, ``bert still`` and ``ernie still`` without dropout; ``rows`` and ``few``, files of rows.py;
and ``batch_size``, ``lr``, ``weight_decay``, ``clip``, ``seed``, ``share`` of masked tokens."""

LIBRARIES: list[str] = []


def prepare(job: Job) -> Callable[..., dict[str, Any]]:
    """Load the engine that the job names; rounds ask for ``costs`` or ``train``."""
    engine = import_module(f"benchmarks.pretraining.{job['engine']}_engine")
    LIBRARIES.extend(engine.LIBRARIES)

    def work(ask: str) -> dict[str, Any]:
        gc.collect()  # an optimizer of Paddle's refers to itself: its moments stay until such rings are looked for
        return {"costs": engine.costs(job)} if ask == "costs" else dict(engine.train(job))

    return work
