"""What the outputs of a head over whole texts say, in numpy: for its network, and for an exported model without one.

Each function takes the outputs of a batch, as the network returns them, and the batch; the result has one entry per
example.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onion.tasks.probabilities import sigmoid, softmax


def class_probabilities(logits: np.ndarray, batch: dict[str, Any]) -> list[np.ndarray]:
    """Return the probabilities ``[classes]`` of each example, which has one of the classes."""
    return list(softmax(logits))


def label_probabilities(logits: np.ndarray, batch: dict[str, Any]) -> list[np.ndarray]:
    """Return the probabilities, float64 ``[labels]``, of each example, which may have any of the labels."""
    return list(sigmoid(logits))


def numbers(outputs: np.ndarray, batch: dict[str, Any]) -> list[float]:
    """Return the number of each example, from ``[batch, 1]``."""
    return [float(each) for each in outputs.squeeze(1).tolist()]


def match_scores(logits: np.ndarray, batch: dict[str, Any]) -> list[np.ndarray]:
    """Return the probability of the second of two labels of each example, float64."""
    other, fitting = logits.astype(np.float64).T
    return list(sigmoid(fitting - other))


def pair_scores(logits: np.ndarray, batch: dict[str, Any]) -> list[np.ndarray]:
    """Return the score of each example, float64; of a pair ``[2]``, those of the better and the worse text."""
    scores = sigmoid(logits[:, 0])
    paired = len(scores) == 2 * len(batch["places"])
    return list(scores.reshape(2, -1).T) if paired else list(scores)
