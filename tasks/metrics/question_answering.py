"""Figures of reading comprehension."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onion.tasks.metrics.null_threshold import best_threshold
from onion.tasks.question_answering.answers import Found, Spans
from onion.tasks.question_answering.questions import Question

FIGURES = ("exact_match", "f1")


class ReadingMetric:
    """Exact match and F1 over questions, each against that of its answers that it agrees with best.

    The figures go from 0 to 1; SQuAD's and CMRC's scripts print them times 100. ``exact_match`` and ``f1`` are means
    over all questions. Where some have no answer (the only right answer then is the empty one), there are also
    ``has_answer_exact_match``, ``has_answer_f1`` and ``no_answer_exact_match`` over either kind, as in SQuAD 2.0; and,
    if answers depend on ``null_odds``, ``best_exact_match`` and ``best_f1``, which the best threshold of these would
    reach, with ``best_exact_match_threshold`` and ``best_f1_threshold``.

    Args:
        questions: with their answers, in the order of ``row``.
        find: chooses the answer to a question from the spans of its windows.
        alike: tells of an answer and a right one whether they are the same, and their F1.
        with_negative: whether there may be no answer, by ``null_odds``.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        find: Callable[[Question, Sequence[Spans]], Found],
        alike: Callable[[str, str], tuple[float, float]],
        with_negative: bool = False,
    ) -> None:
        self._questions, self._find, self._alike, self._with_negative = questions, find, alike, with_negative
        self.reset()

    @property
    def names(self) -> Sequence[str]:
        """The figures that there will be."""
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
        """Return the figures; a question without any window does not count."""
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
        """What the best thresholds of ``null_odds`` are, and what they would reach."""
        odds = np.array([each.null_odds for each in found])
        answered = self._scores(asked, [each.best for each in found])
        refused = self._scores(asked, ["" for _ in found])
        figures: dict[str, float] = {}
        for name, mine, theirs in zip(FIGURES, answered.T, refused.T, strict=True):
            threshold, score = best_threshold(odds, mine, theirs)
            figures |= {f"best_{name}": score, f"best_{name}_threshold": threshold}
        return figures

    def _windows(self, row: int) -> list[Spans]:
        # In the order of the context, whatever that of the batches was: equal scores go to the first.
        return [spans for _, spans in sorted(self._found[row], key=lambda each: each[0])]

    def _scores(self, asked: Sequence[Question], answers: Sequence[str]) -> np.ndarray:
        """Exact match and F1 of each answer, float64 [questions, 2]."""
        scores = [self._score(question, answer) for question, answer in zip(asked, answers, strict=True)]
        return np.array(scores, np.float64).reshape(-1, len(FIGURES))

    def _score(self, question: Question, answer: str) -> np.ndarray:
        truths = [each.text for each in question.answers] or [""]
        return np.max([self._alike(answer, truth) for truth in truths], axis=0)


def _means(scores: np.ndarray, kind: str = "") -> dict[str, float]:
    means = scores.mean(axis=0) if len(scores) else np.zeros(len(FIGURES))
    return {f"{kind}{name}": value for name, value in zip(FIGURES, means.tolist(), strict=True)}
