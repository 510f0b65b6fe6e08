"""Figures of reading comprehension."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onion.tasks.spans.answers import Spans
from onion.tasks.spans.questions import Question


class ReadingMetric:
    """Exact match and F1 over questions, each against that of its answers that it agrees with best.

    The figures go from 0 to 1; SQuAD's and CMRC's scripts print them times 100. ``exact_match`` and ``f1`` are means
    over all questions. Where some have no answer (the only right answer then is the empty one), there are also
    ``has_answer_exact_match``, ``has_answer_f1`` and ``no_answer_exact_match`` over either kind, as in SQuAD 2.0.

    Args:
        questions: with their answers, in the order of ``row``.
        answer: chooses the answer to a question from the spans of its windows.
        alike: tells of an answer and a right one whether they are the same, and their F1.
    """

    def __init__(
        self,
        questions: Sequence[Question],
        answer: Callable[[Question, Sequence[Spans]], str],
        alike: Callable[[str, str], tuple[float, float]],
    ) -> None:
        self._questions, self._answer, self._alike = questions, answer, alike
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._found: dict[int, list[tuple[int, Spans]]] = {}

    def update(self, outputs: Sequence[Spans], batch: Mapping[str, Any]) -> None:
        """Collect the spans of a batch of windows."""
        for place, window, spans in zip(batch["places"], batch["windows"], outputs, strict=True):
            self._found.setdefault(window["row"], []).append((place, spans))

    def result(self) -> dict[str, float]:
        """Return the figures, each from 0 to 1; a question without any window does not count."""
        rows = sorted(self._found)
        scores = np.array([self._score(row) for row in rows]).reshape(-1, 2)
        answerable = np.array([bool(self._questions[row].answers) for row in rows], bool)
        exact_match, f1 = _mean(scores)
        figures = {"exact_match": exact_match, "f1": f1}
        if answerable.all():
            return figures
        has_exact_match, has_f1 = _mean(scores[answerable])
        no_exact_match, _ = _mean(scores[~answerable])
        return {
            **figures,
            "has_answer_exact_match": has_exact_match,
            "has_answer_f1": has_f1,
            "no_answer_exact_match": no_exact_match,
        }

    def _score(self, row: int) -> np.ndarray:
        question = self._questions[row]
        # In the order of the context, whatever that of the batches was: equal scores go to the first.
        windows = [spans for _, spans in sorted(self._found[row], key=lambda each: each[0])]
        answer = self._answer(question, windows)
        truths = [each.text for each in question.answers] or [""]
        return np.max([self._alike(answer, truth) for truth in truths], axis=0)


def _mean(scores: np.ndarray) -> tuple[float, float]:
    exact_match, f1 = scores.mean(axis=0) if len(scores) else (0.0, 0.0)
    return float(exact_match), float(f1)
