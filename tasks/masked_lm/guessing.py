"""Scores of all words at the masked places -> the best guesses of each example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onion.tasks.metrics.perplexity import Guesses
from onion.tasks.probabilities import softmax


def guesses(scores: np.ndarray, batch: dict[str, Any], most: int) -> list[Guesses]:
    """Return the guesses of each example, with the loss of the true words if the batch has ``labels``.

    Args:
        scores: float32 [masked words, vocabulary].
        batch: with ``masked_positions``, ``input_ids`` and ``lengths``.
        most: the number of guesses per masked word, if the vocabulary has so many.

    Returns:
        The most probable words, best first; of equal ones, that with the lower id.
    """
    probabilities = softmax(scores) if len(scores) else scores
    ids = _best(probabilities, min(most, scores.shape[1]))
    columns = [ids, np.take_along_axis(probabilities, ids, 1)]
    if "labels" in batch:
        # -log(softmax), by the best word: of a probability of 0, the logarithm would be infinite.
        own, top = (np.take_along_axis(scores, each, 1)[:, 0] for each in (np.asarray(batch["labels"])[:, None], ids))
        columns.append(top - own - np.log(columns[1][:, 0]))
    return of_examples(columns, batch)


def of_examples(columns: Sequence[np.ndarray], batch: dict[str, Any]) -> list[Guesses]:
    """Return the part of each example of the fields of ``Guesses``, which have a row for each masked word."""
    length = batch["input_ids"].shape[1]
    ends = np.searchsorted(batch["masked_positions"], length * np.arange(1, len(batch["lengths"])))
    return [Guesses(*parts) for parts in zip(*(np.split(column, ends) for column in columns), strict=True)]


def _best(values: np.ndarray, most: int) -> np.ndarray:
    """Return the places of the largest values of each row, largest first; int64 [rows, most]."""
    found = np.empty((len(values), most), np.int64)
    if len(values):
        least = np.partition(values, -most, axis=1)[:, -most]
        for places, row, limit in zip(found, values, least, strict=True):
            # Of those that equal the least, the partition itself would choose any. "Not below" also keeps NaN.
            candidates = np.flatnonzero(~(row < limit))
            places[:] = candidates[np.argsort(-row[candidates], kind="stable")[:most]]
    return found
