"""From which odds on it is best to say that a question has no answer.

Source: what ``evaluate-v2.0.py`` of SQuAD (Rajpurkar et al. 2018) reports as ``best_exact_thresh`` and
``best_f1_thresh``, with two differences. Questions with equal odds are answered together or not at all, as any
threshold has it; and the threshold lies midway between the odds that it separates, so rounding these does no harm.
"""

from __future__ import annotations

import numpy as np


def best_threshold(odds: np.ndarray, answered: np.ndarray, refused: np.ndarray) -> tuple[float, float]:
    """Return the best threshold, the least of equals, and the mean score that it reaches.

    Args:
        odds: float64 [questions], at least one: a question is answered where they are not above the threshold.
        answered: float64 [questions], what answering it scores.
        refused: float64 [questions], what saying that there is no answer scores.
    """
    order = np.argsort(odds, kind="stable")
    ordered = odds[order]
    # totals[n]: n questions are answered, those with the least odds.
    totals = refused.sum() + np.append(0.0, np.cumsum((answered - refused)[order]))
    possible = np.concatenate([[True], ordered[1:] > ordered[:-1], [True]])
    number = int(np.argmax(np.where(possible, totals, -np.inf)))
    bounds = np.concatenate([ordered[:1] - 1, ordered, ordered[-1:] + 1])
    return float(bounds[number : number + 2].mean()), float(totals[number] / len(odds))
