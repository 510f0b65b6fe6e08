"""The figures of a pretraining task: of the masked words by kind of unit, and of the classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onion.tasks.metrics.perplexity import perplexity
from onion.tasks.metrics.state import StatefulMetric
from onion.tasks.pretraining.masking.levels import LEVELS
from onion.tasks.pretraining.networks import Decoded

_OF_KINDS = tuple(f".{level}" for level in LEVELS)


class PretrainingMetric(StatefulMetric):
    """Loss, perplexity and accuracy of masked words, overall and by kind of unit; loss, accuracy and F1 of classes.

    Of words: ``word_loss``, ``perplexity``, ``word_accuracy``, and for each kind that occurs ``word_loss.<kind>``,
    ``perplexity.<kind>`` and ``word_accuracy.<kind>``. Of classes: ``class_loss``, ``accuracy`` and ``f1_macro``, the
    unweighted mean of the classes' F1. Losses are means in nats; perplexity is e to the mean loss of a word.

    Args:
        classes: the names of the classes; empty: none.
        words: whether there are masked words. Default True.
    """

    less_is_better = frozenset(
        {"class_loss", *(f"{name}{kind}" for name in ("word_loss", "perplexity") for kind in ("", *_OF_KINDS))}
    )

    word_losses: np.ndarray
    word_right: np.ndarray
    word_counts: np.ndarray
    class_loss: float
    confusion: np.ndarray

    def __init__(self, classes: Sequence[str] = (), words: bool = True) -> None:
        self.classes, self.words = tuple(classes), words
        none = np.zeros(len(LEVELS), np.int64)
        super().__init__(
            word_losses=np.zeros(len(LEVELS)),
            word_right=none,
            word_counts=none,
            class_loss=0.0,
            confusion=np.zeros((len(classes), len(classes)), np.int64),
        )

    @property
    def names(self) -> list[str]:
        """The names of the figures that are always there."""
        words = ["word_loss", "perplexity", "word_accuracy"] if self.words else []
        return words + (["class_loss", "accuracy", "f1_macro"] if self.classes else [])

    def update(self, outputs: Decoded, batch: Any) -> None:
        """Add a batch."""
        words, classes, many = outputs.words, outputs.classes, len(LEVELS)
        self.word_losses += np.bincount(outputs.levels, words.losses.astype(np.float64), minlength=many)
        self.word_counts += np.bincount(outputs.levels, minlength=many)
        self.word_right += np.bincount(outputs.levels[words.predicted == words.labels], minlength=many)
        self.class_loss += float(classes.losses.sum(dtype=np.float64))
        np.add.at(self.confusion, (classes.labels, classes.predicted), 1)

    def result(self) -> dict[str, float]:
        """Return the figures."""
        return {**(self._of_words() if self.words else {}), **(self._of_classes() if self.classes else {})}

    def _of_words(self) -> dict[str, float]:
        total = max(int(self.word_counts.sum()), 1)
        loss = float(self.word_losses.sum()) / total
        found = {"word_loss": loss, "perplexity": perplexity(loss), "word_accuracy": int(self.word_right.sum()) / total}
        for level, kind in enumerate(_OF_KINDS):
            if count := int(self.word_counts[level]):
                loss = float(self.word_losses[level]) / count
                found[f"word_loss{kind}"], found[f"perplexity{kind}"] = loss, perplexity(loss)
                found[f"word_accuracy{kind}"] = int(self.word_right[level]) / count
        return found

    def _of_classes(self) -> dict[str, float]:
        right, total = np.diag(self.confusion), max(int(self.confusion.sum()), 1)
        f1 = 2 * right / np.maximum(self.confusion.sum(axis=0) + self.confusion.sum(axis=1), 1)
        return {
            "class_loss": self.class_loss / total,
            "accuracy": float(right.sum() / total),
            "f1_macro": float(f1.mean()),
        }
