"""How well scores separate rows that are relevant to a question from others.

Rows with equal scores are ranked in the worst order, so no figure depends on the order of a file, and constant scores
earn nothing. (ERNIE keeps the order of the file.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from onion.tasks.metrics.state import StatefulMetric

Figures: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], dict[str, float]]
"""(scores float64, relevant bool, questions; each ``[rows]``) -> figures from 0 to 1."""


def decisions(scores: np.ndarray, relevant: np.ndarray, questions: np.ndarray) -> dict[str, float]:
    """Return ``accuracy`` and, of relevant rows, ``f1``; rows with a score over 0.5 are predicted as relevant."""
    taken = scores > 0.5
    found, marked = int((taken & relevant).sum()), int(taken.sum() + relevant.sum())
    return {"accuracy": _mean(taken == relevant), "f1": 2 * found / max(marked, 1)}


def order(scores: np.ndarray, relevant: np.ndarray, questions: np.ndarray) -> dict[str, float]:
    """Return as ``accuracy`` the share of pairs of a relevant and another row in which the former has the higher score.

    Both rows belong to the same question; with a single question, this is the area under the ROC curve.
    """
    right = pairs = 0
    for mine, theirs in _by_question(scores, relevant, questions):
        right += int(np.searchsorted(np.sort(theirs), mine).sum())  # how many of theirs are below each of mine
        pairs += len(mine) * len(theirs)
    return {"accuracy": right / max(pairs, 1)}


def ranking(scores: np.ndarray, relevant: np.ndarray, questions: np.ndarray) -> dict[str, float]:
    """Return ``mrr`` and ``map``: mean reciprocal rank and mean average precision over the questions.

    A question without a relevant row counts as 0, as in NLPCC's DBQA task and in ERNIE.
    """
    first, average = [], []
    for mine, theirs in _by_question(scores, relevant, questions):
        mine = np.sort(mine)[::-1]
        counted = np.arange(1, len(mine) + 1)
        # Among equal scores, rows that are not relevant are ranked first.
        ranks = counted + len(theirs) - np.searchsorted(np.sort(theirs), mine)
        first.append(1 / ranks[0] if len(mine) else 0.0)
        average.append(_mean(counted / ranks))
    return {"mrr": _mean(first), "map": _mean(average)}


class RankingMetric(StatefulMetric):
    """Metrics of the scores of all rows of a file, and ``batch["labels"]``: 1 for relevant rows, 0 for others.

    Args:
        figures: functions that compute them, such as those above.
        questions: the number of each row's question; ``batch["places"]`` has the indices of the rows.
    """

    scores: np.ndarray
    labels: np.ndarray
    places: np.ndarray

    def __init__(self, figures: Sequence[Figures], questions: Sequence[int] | np.ndarray) -> None:
        self.figures, self.questions = tuple(figures), np.asarray(questions)
        super().__init__(scores=np.zeros(0), labels=np.zeros(0, np.int64), places=np.zeros(0, np.int64))

    def update(self, outputs: Any, batch: Any) -> None:
        """Add the scores ``[batch]``."""
        self.scores = np.append(self.scores, np.asarray(outputs, np.float64))
        self.labels = np.append(self.labels, np.asarray(batch["labels"], np.int64))
        self.places = np.append(self.places, np.asarray(batch["places"], np.int64))

    def result(self) -> dict[str, float]:
        """Return the figures, each from 0 to 1."""
        rows = self.scores, self.labels > 0, self.questions[self.places]
        return {name: value for figures in self.figures for name, value in figures(*rows).items()}


class PairMetric(StatefulMetric):
    """Accuracy of scores ``[batch, 2]``: the share of rows whose first score is higher."""

    right: int
    rows: int

    def __init__(self) -> None:
        super().__init__(right=0, rows=0)

    def update(self, outputs: Any, batch: Any) -> None:
        """Count a batch."""
        scores = np.asarray(outputs)
        self.right += int((scores[:, 0] > scores[:, 1]).sum())
        self.rows += len(scores)

    def result(self) -> dict[str, float]:
        """Return the figure, from 0 to 1."""
        return {"accuracy": self.right / max(self.rows, 1)}


def _by_question(
    scores: np.ndarray, relevant: np.ndarray, questions: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for each question the scores of its relevant rows and of its others."""
    grouped = np.argsort(questions, kind="stable")
    ends = np.flatnonzero(np.diff(questions[grouped])) + 1
    for rows in np.split(grouped, ends) if len(grouped) else []:
        yield scores[rows[relevant[rows]]], scores[rows[~relevant[rows]]]


def _mean(values: Any) -> float:
    """Return the mean, 0 of nothing."""
    return float(np.mean(values)) if len(values) else 0.0
