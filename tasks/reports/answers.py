"""The report of question answering: each question, the worst answer first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from onion.tasks.question_answering.questions import Question
from onion.tasks.reports.report import Report, Sheet


def answers_report(
    questions: Sequence[Question],
    predicted: Iterable[Mapping[str, Any]],
    score: Callable[[Question, str], tuple[float, float]],
) -> Report:
    """Return exact match and F1 of each question: the lowest F1 first, of these the most confident answer.

    Args:
        questions: with their answers.
        predicted: the prediction for each: ``answer`` and ``nbest``.
        score: returns exact match and F1 of an answer to a question.
    """
    rows = []
    for question, each in zip(questions, predicted, strict=True):
        answers = json.dumps([answer.text for answer in question.answers], ensure_ascii=False)
        told = [question.where, question.id, question.text, answers, each["answer"]]
        rows.append([*told, *score(question, each["answer"]), _confidence(each)])
    rows.sort(key=lambda row: (row[-2], -row[-1]))
    columns = ["place", "id", "question", "answers", "predicted", "exact_match", "f1", "confidence"]
    wrong = sum(not exact for *_, exact, _, _ in rows)
    return Report(summary={"errors": wrong}, sheets={"questions.csv": Sheet(columns, rows)})


def _confidence(predicted: Mapping[str, Any]) -> float:
    """Return the probability of the answer among the best ones, 0 if it is not one of them."""
    return next((best["probability"] for best in predicted["nbest"] if best["text"] == predicted["answer"]), 0.0)
