"""What the sides share: batches of similar length, a softmax, the clock. Needs numpy only."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

BATCH = 64
"""Texts that an engine is given at once."""

Job = dict[str, Any]
"""``folder`` of the model; ``head`` (its file), ``max_length``; ``texts``; ``engine``, and what that takes besides."""

HookIterator = Callable[[Sequence[str]], Any]


def in_order(run: HookIterator) -> HookIterator:
    """Let an engine have texts as they come."""

    def way(texts: Sequence[str]) -> np.ndarray:
        return np.concatenate([run(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)])

    return way


def by_length(run: HookIterator) -> HookIterator:
    """Let an engine have the short texts first, which wastes little on padding; results are put back in order."""

    def way(texts: Sequence[str]) -> np.ndarray:
        order = np.argsort([len(text) for text in texts], kind="stable")
        found = in_order(run)([texts[place] for place in order])
        back = np.empty_like(found)
        back[order] = found
        return back

    return way


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Return the softmax along the last axis."""
    scores = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True)


def mean_of(vectors: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the mean of each text's token vectors: [texts, length, hidden] and [texts, length] -> [texts, hidden]."""
    weights = mask[:, :, None].astype(np.float32)
    return (vectors * weights).sum(axis=1) / weights.sum(axis=1)


def head_of(job: Job) -> tuple[np.ndarray, np.ndarray]:
    """Return weight and bias of the classifier over the pooled output."""
    with np.load(job["head"]) as head:
        return head["weight"], head["bias"]


def seconds(way: HookIterator, texts: Sequence[str]) -> float:
    """Time one call."""
    start = time.perf_counter()
    way(texts)
    return time.perf_counter() - start
