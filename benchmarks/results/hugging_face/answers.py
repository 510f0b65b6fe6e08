"""Reading comprehension, as in transformers' run_qa.py and utils_qa.py, without unanswerable questions.

Windows over a text begin ``doc_stride`` tokens apart, as in BERT and onion. (run_qa.py counts the tokens that two
windows share instead; here that number is worked out for each question.) A window without the answer learns to point
at [CLS]. An answer that does not stand where the file says teaches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from transformers import AutoModelForQuestionAnswering, DataCollatorWithPadding, Trainer

from benchmarks.results.hugging_face.files import Question, questions
from benchmarks.results.hugging_face.squad import squad_figures
from benchmarks.results.hugging_face.training import Prepared, in_order

N_BEST = 20
NOWHERE = (0, 0)
"""The place of [CLS]."""

Span = tuple[int, int]


def reading(job: dict[str, Any], tokenizer: Any) -> Prepared:
    """Prepare a job of questions and texts."""

    def figures(trainer: Trainer, path: str) -> dict[str, float]:
        asked = list(questions(path))
        found = [_windows(question, tokenizer, job) for question in asked]
        inputs = [{name: window[name] for name in tokenizer.model_input_names} for some in found for window in some]
        scores = iter(zip(*in_order(trainer, inputs), strict=True))
        limit = job["options"]["max_answer_length"]
        told = {
            question.id: best_answer(question.context, [(window["spans"], *next(scores)) for window in some], limit)
            for question, some in zip(asked, found, strict=True)
        }
        return squad_figures({question.id: [text for text, _ in question.answers] for question in asked}, told)

    examples = [example for question in questions(job["train"]) for example in _learned(question, tokenizer, job)]
    model = AutoModelForQuestionAnswering.from_pretrained(job["encoder"])
    return Prepared(model, examples, DataCollatorWithPadding(tokenizer), figures)


def _learned(question: Question, tokenizer: Any, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the windows of a question with the places of the first answer that stands where the file says."""
    right = [(start, start + len(text)) for text, start in question.answers if _stands(question.context, text, start)]
    if not right:
        return
    for window in _windows(question, tokenizer, job):
        first, last = _place(window["spans"], *right[0])
        inputs = {name: window[name] for name in tokenizer.model_input_names}
        yield {**inputs, "start_positions": first, "end_positions": last}


def _stands(context: str, text: str, start: int) -> bool:
    return start >= 0 and text != "" and context[start : start + len(text)] == text


def _windows(question: Question, tokenizer: Any, job: dict[str, Any]) -> list[dict[str, Any]]:
    """Inputs, and ``spans``: for each token of the text where it stands there, None for all other tokens."""
    length, step = job["options"]["max_length"], job["options"]["doc_stride"]
    asked = len(tokenizer(question.text, add_special_tokens=False)["input_ids"])
    room = length - asked - tokenizer.num_special_tokens_to_add(pair=True)
    found = tokenizer(
        question.text,
        question.context,
        truncation="only_second",
        max_length=length,
        stride=max(0, room - step),
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    return [
        {
            **{name: found[name][place] for name in tokenizer.model_input_names},
            "spans": [
                span if which == 1 else None
                for span, which in zip(found["offset_mapping"][place], found.sequence_ids(place), strict=True)
            ],
        }
        for place in range(len(found["input_ids"]))
    ]


def _place(spans: Sequence[Span | None], begin: int, end: int) -> Span:
    """The first and the last token of an answer, or that of [CLS] where the window does not hold it whole."""
    inside = [place for place, span in enumerate(spans) if span and span[0] < end and span[1] > begin]
    covered = inside and spans[inside[0]][0] <= begin and spans[inside[-1]][1] >= end
    return (inside[0], inside[-1]) if covered else NOWHERE


def best_answer(context: str, windows: Sequence[tuple[list[Span | None], np.ndarray, np.ndarray]], limit: int) -> str:
    """Return the best answer of all windows: the largest sum of a start and an end that may go together.

    Args:
        context: the text.
        windows: spans, scores of starts, scores of ends; the scores may be padded.
        limit: tokens an answer may have.
    """
    best, answer = -np.inf, ""
    for spans, starts, ends in windows:
        firsts, lasts = _largest(starts[: len(spans)]), _largest(ends[: len(spans)])
        for first, last in product(firsts, lasts):
            score = starts[first] + ends[last]
            if spans[first] and spans[last] and 0 <= last - first < limit and score > best:
                best, answer = score, context[spans[first][0] : spans[last][1]]
    return answer


def _largest(scores: np.ndarray) -> list[int]:
    return np.argsort(scores)[::-1][:N_BEST].tolist()
