"""Logits of words -> the tags of each example, each word independently or all words of a window jointly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from onion.tasks.probabilities import softmax
from onion.tasks.token_classification.batches import grid, starts
from onion.tasks.token_classification.tags import Tags
from onion.tasks.token_classification.viterbi import best_paths, marginals


def independent_tags(logits: np.ndarray, batch: dict[str, Any]) -> list[Tags]:
    """Return for each example the tags of its own words.

    Args:
        logits: float32 [words, tags].
        batch: as made by ``onion.tasks.token_classification.batches.tagging_batch``.
    """
    borders = np.cumsum(batch["words"])[:-1]
    paths, best = (np.split(each, borders) for each in (logits.argmax(axis=1), softmax(logits).max(axis=1)))
    return _own(map(Tags, paths, best), batch)


def joint_tags(
    logits: np.ndarray, batch: dict[str, Any], transitions: np.ndarray, start: np.ndarray, end: np.ndarray
) -> list[Tags]:
    """Return for each example the tags of its own words, those of the most probable path of its window.

    Args:
        logits: float32 [words, tags].
        batch: see :func:`independent_tags`.
        transitions: of the chain; see ``viterbi.py``.
        start: of the chain.
        end: of the chain.
    """
    words = batch["words"]
    scores, chain = logits[grid(starts(words), words)], (transitions, start, end)
    paths = best_paths(scores, words, *chain)
    chances = marginals(scores, words, *chain)
    best = (each[np.arange(len(path)), path] for path, each in zip(paths, chances, strict=True))
    return _own(map(Tags, paths, best), batch)


def _own(of_windows: Iterable[Tags], batch: dict[str, Any]) -> list[Tags]:
    return [tags[begin:end] for tags, (begin, end) in zip(of_windows, batch["own"], strict=True)]
