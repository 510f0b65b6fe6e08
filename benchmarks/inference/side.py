"""A process with one engine: it answers with what the engine computes, or with how long that takes."""

from __future__ import annotations

import base64
from collections.abc import Callable
from importlib import import_module

import numpy as np

from benchmarks.common.worker import Answer, serve
from benchmarks.inference.work import Job, seconds

LIBRARIES: list[str] = []
WARM = 8
"""Texts that are computed before any is timed."""


def prepare(job: Job) -> Callable[..., Answer]:
    """Load the engine, and let it warm up."""
    engine = import_module(f"benchmarks.inference.engines.{job['engine']}")
    LIBRARIES.extend(engine.LIBRARIES)
    texts, ways = job["texts"], engine.ways(job)
    for way in ways.values():
        way(texts[:WARM])
        way(texts[:1])

    def work(ask: str) -> Answer:
        if ask == "results":
            return {name: _written(way(texts)) for name, way in ways.items() if name != "tokenise"}
        if ask == "bulk":
            return {name: seconds(way, texts) for name, way in ways.items()}
        lone = {name: way for name, way in ways.items() if "order" not in name}
        return {name: [seconds(way, [text]) for text in texts[: job["singles"]]] for name, way in lone.items()}

    return work


def _written(found: np.ndarray) -> str:
    """The bytes of float32, for JSON."""
    return base64.b64encode(np.ascontiguousarray(found, "<f4").tobytes()).decode()


if __name__ == "__main__":
    serve(prepare, LIBRARIES)
