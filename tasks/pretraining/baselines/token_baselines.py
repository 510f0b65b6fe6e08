"""What is right about tokens, or about their labels, without reading: figures that a task has to beat."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from onion.tasks.metrics.perplexity import perplexity
from onion.tasks.pretraining.examples import UNLABELLED, Example

Labels = NDArray[np.integer]


def labelled(examples: Sequence[Example]) -> tuple[Labels, Labels]:
    """Return the ids and the labels of all tokens that have one, both int64 ``[labels]``."""
    labels = np.concatenate([example["token_labels"] for example in examples])
    ids = np.concatenate([example["ids"] for example in examples])
    return ids[labels != UNLABELLED], labels[labels != UNLABELLED]


def word_frequencies(train: Sequence[Example], held_out: Sequence[Example]) -> dict[str, float]:
    """Guess every token by how often tokens occur: what a network that does not look at the text can learn.

    All tokens between the first and the last one count, of which the masks choose some. Each token is counted once more
    than it was found, as in ``token_frequencies``.

    Returns:
        ``word_loss.frequencies`` in nats a token, ``perplexity.frequencies``, and ``word_accuracy.commonest``.
    """
    known, wanted = (np.concatenate([each["ids"][1:-1] for each in examples]) for examples in (train, held_out))
    counts = np.bincount(known, minlength=int(max(known.max(), wanted.max())) + 1) + 1
    loss = float(-np.log(counts[wanted] / counts.sum()).mean())
    right = float((wanted == counts.argmax()).mean())
    return {"word_loss.frequencies": loss, "perplexity.frequencies": perplexity(loss), "word_accuracy.commonest": right}


def commonest(train: Labels, held_out: Labels) -> float:
    """Return the accuracy of the commonest label of the training examples.

    Args:
        train: int ``[n]``, from 0.
        held_out: int ``[m]``.
    """
    return float((held_out == np.bincount(train).argmax()).mean())


def by_key(train: Sequence[Hashable], labels: Labels, held_out: Sequence[Hashable], held_out_labels: Labels) -> float:
    """Return the accuracy of the commonest label of each key; of a new key, of all.

    Args:
        train: what is known of each training label, such as its word.
        labels: int ``[n]``, from 0.
        held_out: what is known of each label to be right about.
        held_out_labels: int ``[m]``.
    """
    counts: dict[Hashable, NDArray[np.int64]] = {}
    every = np.bincount(labels)
    for key, label in zip(train, labels.tolist(), strict=True):
        counts.setdefault(key, np.zeros(len(every), np.int64))[label] += 1
    found = [int(counts.get(key, every).argmax()) for key in held_out]
    return float((np.array(found) == held_out_labels).mean())


def by_threshold(
    train: NDArray[np.number], labels: Labels, held_out: NDArray[np.number], held_out_labels: Labels
) -> float:
    """Return the accuracy of "1 from a threshold on", with the best threshold of the training examples.

    A logistic regression on one number decides so too.

    Args:
        train: a number of each training example, ``[n]``.
        labels: 0 or 1, ``[n]``.
        held_out: the numbers of the examples to be right about, ``[m]``.
        held_out_labels: 0 or 1, ``[m]``.
    """
    values, places = np.unique(train, return_inverse=True)
    ones = np.bincount(places, weights=labels == 1, minlength=len(values))
    zeros = np.bincount(places, weights=labels == 0, minlength=len(values))
    right = np.append(0, np.cumsum(zeros)) + np.append(np.cumsum(ones[::-1])[::-1], 0)
    threshold = np.append(values, np.inf)[right.argmax()]
    return float(((held_out >= threshold) == (held_out_labels == 1)).mean())
