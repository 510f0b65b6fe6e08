"""What the sides share: a process with one engine, batches of similar length, a softmax, the clock. numpy only."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

LIBRARIES: list[str] = []
WARM = 8
"""Texts that are computed before any is timed."""

BATCH = 64
"""Texts that an engine is given at once."""

Job = dict[str, Any]
"""``folder`` of the model; ``head`` (its file), ``max_length``; ``texts``, and how many ``singles``; ``avx2``;
``engine`` (``MODULE.FUNCTION``), and what that takes besides."""

Engine = Callable[[Sequence[str]], Any]


def prepare(job: Job) -> Callable[..., dict[str, Any]]:
    """Load the engine and warm it up; rounds ask for ``results``, or how long they take (``bulk``, ``singles``)."""
    name, _, function = job["engine"].partition(".")
    engine = import_module(f"benchmarks.inference.{name}")
    texts, ways = job["texts"], getattr(engine, function)(job)
    LIBRARIES.extend(engine.LIBRARIES)
    for way in ways.values():
        way(texts[:WARM])
        way(texts[:1])

    def work(ask: str) -> dict[str, Any]:
        if ask == "results":
            return {name: _written(way(texts)) for name, way in ways.items() if name != "tokenise"}
        if ask == "bulk":
            return {name: seconds(way, texts) for name, way in ways.items()}
        lone = {name: way for name, way in ways.items() if "order" not in name}
        return {name: [seconds(way, [text]) for text in texts[: job["singles"]]] for name, way in lone.items()}

    return work


def _written(found: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(found, "<f4").tobytes()).decode()


def in_order(run: Engine) -> Engine:
    """Let an engine have texts as they come."""

    def way(texts: Sequence[str]) -> np.ndarray:
        return np.concatenate([run(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)])

    return way


def by_length(run: Engine) -> Engine:
    """Let an engine have the short texts first, which wastes little on padding; results are put back in order."""

    def way(texts: Sequence[str]) -> np.ndarray:
        order = np.argsort([len(text) for text in texts], kind="stable")
        found = in_order(run)([texts[place] for place in order])
        back = np.empty_like(found)
        back[order] = found
        return back

    return way


def probabilities(logits: np.ndarray) -> np.ndarray:
    scores = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True)


def mean_of(vectors: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the mean of each text's token vectors: [texts, length, hidden] and [texts, length] -> [texts, hidden]."""
    weights = mask[:, :, None].astype(np.float32)
    return (vectors * weights).sum(axis=1) / weights.sum(axis=1)


def head_of(job: Job) -> tuple[np.ndarray, np.ndarray]:
    with np.load(job["head"]) as head:
        return head["weight"], head["bias"]


def seconds(way: Engine, texts: Sequence[str]) -> float:
    start = time.perf_counter()
    way(texts)
    return time.perf_counter() - start
