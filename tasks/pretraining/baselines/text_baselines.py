"""What is right about labels without reading a text in order: figures that a network has to beat.

Each function counts on examples to learn from, and returns its accuracy, from 0 to 1, on held-out ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from onion.tasks.pretraining.examples import SECOND, Example

BINS = 16
"""Parts of equal size that a number's range is cut into."""


def commonest(train: Sequence[Example], held_out: Sequence[Example]) -> float:
    """Always say the commonest label."""
    return by_number(train, held_out, lambda _: 0)


def by_number(train: Sequence[Example], held_out: Sequence[Example], number: Callable[[Example], float]) -> float:
    """Say the commonest label of the examples with a similar number.

    Args:
        train: at least one example.
        held_out: at least one example.
        number: what is known of an example. Its range is cut into at most 16 parts with equally many of ``train``.
    """
    known, labels = _numbers(train, number), _labels(train)
    cuts = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1)[1:-1], method="higher"))
    counts = np.zeros((len(cuts) + 1, int(labels.max()) + 1), np.int64)
    np.add.at(counts, (np.searchsorted(cuts, known, "right"), labels), 1)
    counts[counts.sum(axis=1) == 0] = counts.sum(axis=0)
    said = counts.argmax(axis=1)[np.searchsorted(cuts, _numbers(held_out, number), "right")]
    return float((said == _labels(held_out)).mean())


def overlap(train: Sequence[Example], held_out: Sequence[Example]) -> dict[str, float]:
    """Tell pairs of texts apart by what they share: tokens, or bigrams of tokens.

    Bigrams alone tell ERNIE 1.0's published pairs of sentences apart with an accuracy of .834 (``make ernie-demo``).

    Returns:
        ``accuracy.shared_tokens`` and ``accuracy.shared_bigrams``, each by one number: what share of the rarer side's
        different tokens, or bigrams, stands in the other side too.
    """
    return {
        "accuracy.shared_tokens": by_number(train, held_out, lambda each: _shared(*map(set, texts_of(each)))),
        "accuracy.shared_bigrams": by_number(train, held_out, shared_bigrams),
    }


def texts_of(example: Example) -> tuple[list[int], list[int]]:
    """Return the ids of both texts of a pair ``[CLS] A [SEP] B [SEP]``."""
    second = example["types"] == SECOND
    return example["ids"][~second][1:-1].tolist(), example["ids"][second][:-1].tolist()


def shared_bigrams(example: Example) -> float:
    """Return the share of the different bigrams of the text with fewer of them that the other text has too."""
    one, other = texts_of(example)
    return _shared(set(pairwise(one)), set(pairwise(other)))


def _shared(one: set[Any], other: set[Any]) -> float:
    return len(one & other) / max(min(len(one), len(other)), 1)


def _labels(examples: Sequence[Example]) -> np.ndarray:
    return np.array([each["label"] for each in examples], np.int64)


def _numbers(examples: Sequence[Example], number: Callable[[Example], float]) -> np.ndarray:
    return np.array([number(each) for each in examples], np.float64)
