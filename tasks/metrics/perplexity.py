"""Perplexity and accuracy of masked words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from onion.tasks.metrics.state import StatefulMetric


@attrs.frozen(eq=False)
class Guesses:
    """The predictions for the masked words of one example.

    Attributes:
        ids: int64 ``[masked words, guesses]``, the most probable words, best first.
        probabilities: float32 of the same shape.
        losses: float32 ``[masked words]``, the negative log-probabilities of the true words; None if these are unknown.
    """

    ids: np.ndarray
    probabilities: np.ndarray
    losses: np.ndarray | None = None


class PerplexityMetric(StatefulMetric):
    """Perplexity and accuracy over all masked words, from the :class:`Guesses` of every example.

    ``perplexity`` is e to the mean loss of a word, so uniform guessing among n words has n; ``accuracy`` is the share
    of words that are the best guess. ``batch["labels"]`` holds the true words, int64, example by example.
    """

    less_is_better = frozenset({"perplexity"})

    loss: float
    right: int
    words: int

    def __init__(self) -> None:
        super().__init__(loss=0.0, right=0, words=0)

    def update(self, outputs: Sequence[Guesses], batch: Mapping[str, Any]) -> None:
        """Add a batch."""
        best = np.concatenate([guesses.ids[:, 0] for guesses in outputs])
        for guesses in outputs:
            assert guesses.losses is not None  # there are labels
            self.loss += float(np.sum(guesses.losses, dtype=np.float64))
        self.right += int((best == np.asarray(batch["labels"])).sum())
        self.words += len(best)

    def result(self) -> dict[str, float]:
        """Return both figures."""
        words = max(self.words, 1)
        return {"perplexity": perplexity(self.loss / words), "accuracy": self.right / words}


def perplexity(loss: float) -> float:
    """Return e to a mean loss; infinite if that is beyond float64, as for a diverged network."""
    with np.errstate(over="ignore"):
        return float(np.exp(np.float64(loss)))
