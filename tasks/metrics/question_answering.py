"""Metrics of question answering.

Source: SQuAD's official scripts, ``evaluate-v1.1.py`` and ``evaluate-v2.0.py`` (Rajpurkar et al. 2016, 2018).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onion.tasks.question_answering.answers import Found, Spans
from onion.tasks.question_answering.questions import Question

FIGURES = ("exact_match", "f1")

Alike = Callable[[str, str], tuple[float, float]]
"""Returns whether an answer equals a true one, 1 or 0, and their F1."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class ReadingMetric:
    """Exact match and F1 over questions, each with the best value over the question's answers.

    Figures are from 0 to 1; SQuAD's and CMRC's scripts print them times 100. ``exact_match`` and ``f1`` are means over
    all questions. If some have no answer (so that only the empty answer is correct), there are also
    ``has_answer_exact_match``, ``has_answer_f1`` and ``no_answer_exact_match``, as in SQuAD 2.0; and, if answers depend
    on ``null_odds``, ``best_exact_match`` and ``best_f1`` with the best threshold, and the thresholds
    ``best_exact_match_threshold`` and ``best_f1_threshold``.

    Args:
        questions: with their answers, in the order of ``row``.
        find: chooses the answer to a question from the spans of its windows.
        alike: returns whether an answer equals a true one, and their F1.
        with_negative: whether there may be no answer, by ``null_odds``.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        find: Callable[[Question, Sequence[Spans]], Found],
        alike: Alike,
        with_negative: bool = False,
    ) -> None:
        self._questions, self._find, self._alike, self._with_negative = questions, find, alike, with_negative
        self.reset()

    @property
    def names(self) -> Sequence[str]:
        """The names of the figures."""
        if all(question.answers for question in self._questions):
            return FIGURES
        kinds = [f"{kind}{name}" for kind in ("has_answer_", "no_answer_") for name in FIGURES]
        best = [f"best_{name}" for name in FIGURES] if self._with_negative else []
        return (*FIGURES, *kinds[:-1], *best)

    def reset(self) -> None:
        """Forget all batches."""
        self._found: dict[int, list[tuple[int, Spans]]] = {}

    def update(self, outputs: Sequence[Spans], batch: Mapping[str, Any]) -> None:
        """Collect the spans of a batch of windows."""
        for place, window, spans in zip(batch["places"], batch["windows"], outputs, strict=True):
            self._found.setdefault(window["row"], []).append((place, spans))

    def result(self) -> dict[str, float]:
        """Return the figures; questions without a window are not counted."""
        rows = sorted(self._found)
        asked = [self._questions[row] for row in rows]
        found = [self._find(question, self._windows(row)) for row, question in zip(rows, asked, strict=True)]
        scores = self._scores(asked, [each.text for each in found])
        answerable = np.array([bool(question.answers) for question in asked], bool)
        if answerable.all():
            return _means(scores)
        no_answer = {"no_answer_exact_match": _means(scores[~answerable])["exact_match"]}
        figures = {**_means(scores), **_means(scores[answerable], "has_answer_"), **no_answer}
        return {**figures, **self._best(asked, found)} if self._with_negative else figures

    def _best(self, asked: Sequence[Question], found: Sequence[Found]) -> dict[str, float]:
        """Return the best thresholds of ``null_odds``, and the figures with them."""
        odds = np.array([each.null_odds for each in found])
        answered = self._scores(asked, [each.best for each in found])
        refused = self._scores(asked, ["" for _ in found])
        figures: dict[str, float] = {}
        for name, mine, theirs in zip(FIGURES, answered.T, refused.T, strict=True):
            threshold, score = best_threshold(odds, mine, theirs)
            figures |= {f"best_{name}": score, f"best_{name}_threshold": threshold}
        return figures

    def _windows(self, row: int) -> list[Spans]:
        # In the order of the context, so that the first of equal scores is chosen whatever the order of batches.
        return [spans for _, spans in sorted(self._found[row], key=lambda each: each[0])]

    def _scores(self, asked: Sequence[Question], answers: Sequence[str]) -> np.ndarray:
        """Return exact match and F1 of each answer, float64 [questions, 2]."""
        scores = [score_of(question, answer, self._alike) for question, answer in zip(asked, answers, strict=True)]
        return np.array(scores, np.float64).reshape(-1, len(FIGURES))


def score_of(question: Question, answer: str, alike: Alike) -> tuple[float, float]:
    """Return exact match and F1 of an answer: each the best over the true ones, of which "" is one if there is none."""
    truths = [each.text for each in question.answers] or [""]
    exact, f1 = zip(*(alike(answer, truth) for truth in truths), strict=True)
    return max(exact), max(f1)


def _means(scores: np.ndarray, kind: str = "") -> dict[str, float]:
    means = scores.mean(axis=0) if len(scores) else np.zeros(len(FIGURES))
    return {f"{kind}{name}": value for name, value in zip(FIGURES, means.tolist(), strict=True)}


def alike(answer: str, truth: str) -> tuple[float, float]:
    """Return whether two English answers are equal (1 or 0), and the F1 of their common words.

    Case, punctuation, articles and whitespace are ignored. If nothing is left of one, the F1 is 1 if nothing is left of
    the other (as in SQuAD 2.0; the script of 1.1 gives 0 to an answer of articles only).
    """
    said, true = _words(answer), _words(truth)
    same = float(said == true)
    if not said or not true:
        return same, same
    shared = sum((Counter(said) & Counter(true)).values())
    return same, 2 * shared / (len(said) + len(true))


def _words(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def best_threshold(odds: np.ndarray, answered: np.ndarray, refused: np.ndarray) -> tuple[float, float]:
    """Return the threshold of the odds above which to give no answer, the smallest of the best, and its mean score.

    Source: ``best_exact_thresh`` and ``best_f1_thresh`` of ``evaluate-v2.0.py``, with two differences. Questions with
    equal odds are answered together or not at all, as with any threshold; and the threshold is midway between the odds
    it separates, so rounding does no harm.

    Args:
        odds: float64 [questions], at least one: a question is answered if they are at most the threshold.
        answered: float64 [questions], the score if it is answered.
        refused: float64 [questions], the score if it is not.
    """
    order = np.argsort(odds, kind="stable")
    ordered = odds[order]
    # totals[n]: the n questions with the lowest odds are answered.
    totals = refused.sum() + np.append(0.0, np.cumsum((answered - refused)[order]))
    possible = np.concatenate([[True], ordered[1:] > ordered[:-1], [True]])
    number = int(np.argmax(np.where(possible, totals, -np.inf)))
    bounds = np.concatenate([ordered[:1] - 1, ordered, ordered[-1:] + 1])
    return float(bounds[number : number + 2].mean()), float(totals[number] / len(odds))
