"""How well masked words are guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from onion.tasks.metrics.state import StatefulMetric


@attrs.frozen(eq=False)
class Guesses:
    """What a network makes of the masked words of one example.

    Attributes:
        ids: int64 ``[masked words, guesses]``, the likeliest words, the best first.
        probabilities: float32 of the same shape, theirs.
        losses: float32 ``[masked words]``, minus the logarithm of the probability of the word that stood there; None
            where that is not known.
    """

    ids: np.ndarray
    probabilities: np.ndarray
    losses: np.ndarray | None = None


class PerplexityMetric(StatefulMetric):
    """Perplexity and accuracy over all masked words, each counting the same, over :class:`Guesses` of every example.

    ``perplexity`` is e to the mean loss of a word, so that of guessing among n words blindly is n; ``accuracy`` is the
    share of the words that are the best guess. ``batch["labels"]`` holds the words, int64, example by example.
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
        with np.errstate(over="ignore"):  # beyond float64, as of a network that has gone astray, it is infinite
            perplexity = float(np.exp(np.float64(self.loss / words)))
        return {"perplexity": perplexity, "accuracy": self.right / words}
