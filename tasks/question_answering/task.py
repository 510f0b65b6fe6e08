"""``question-answering``: the part of a context that answers a question, or no answer if the training file has such.

File: JSON in SQuAD's format, 1.1 or 2.0 (also CMRC 2018, DRCD, XQuAD); see ``question_answering/questions.py``. On
standard input: lines of ``question<TAB>context``, or JSON objects with these.
Prediction: ``id``, ``answer``, its begin and end in the context, ``nbest``, and ``null_odds`` if no answer is possible.
Files: ``predictions.json``, which the official scripts read, ``nbest_predictions.json``, ``null_odds.json``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs.validators import optional

from onion.errors import DataError
from onion.messages import shown
from onion.models.tokenizer import Tokenizer
from onion.tasks.batches import batch_of
from onion.tasks.data.features.examples import Example
from onion.tasks.metrics import cmrc
from onion.tasks.metrics.question_answering import ReadingMetric, alike, score_of
from onion.tasks.question_answering.answers import Found, Spans, find, window_spans
from onion.tasks.question_answering.positions import UNKNOWN
from onion.tasks.question_answering.questions import Question, file_questions, line_questions
from onion.tasks.question_answering.windows import Windows, examples_of, note_cut, targets
from onion.tasks.reports.answers import answers_report
from onion.tasks.reports.report import Report
from onion.tasks.task import AFTER_TRAINING, NOT_OF_FEATURES, TOKEN_VECTORS, Task
from onion.tasks.validators import NATURAL, NUMBER, SWITCH, as_float, one_of

if TYPE_CHECKING:
    from paddle import nn

    from onion.tasks.networks.reader import Reader
    from onion.tasks.task import Decode

log = logging.getLogger("onion")

ALIKE = {"en": alike, "zh": cmrc.alike}
SPECIAL = 4
"""Special tokens around a pair: 3 in BERT and ERNIE, 4 in RoBERTa."""


@attrs.frozen(kw_only=True)
class QuestionAnswering(Task):
    """Reading comprehension: an answer is a span of the context (BERT, Devlin et al. 2018, sections 4.2 and 4.3).

    Attributes:
        max_length: the maximum number of tokens of a window, including the question.
        max_query_length: longer questions are truncated to this number of tokens.
        doc_stride: tokens between the starts of consecutive windows.
        max_answer_length: the maximum number of tokens of an answer.
        n_best: the number of answers in ``nbest``.
        null_threshold: there is no answer if ``null_odds`` are larger. For files with questions without answer, the
            metrics have the best threshold: ``best_f1_threshold``.
        with_negative: whether there may be no answer. Default: whether the training file has such questions.
        language: ``"en"`` measures like SQuAD, ``"zh"`` like CMRC 2018. Default: by the questions of the training file.
            A warning is logged if a measured file seems to have the other language.
    """

    name = "question-answering"
    features_version = 1
    head_over = TOKEN_VECTORS
    monitor = "f1"

    max_length: int = attrs.field(default=384, validator=NATURAL)
    max_query_length: int = attrs.field(default=64, validator=NATURAL)
    doc_stride: int = attrs.field(default=128, validator=NATURAL)
    max_answer_length: int = attrs.field(default=30, validator=NATURAL, metadata=AFTER_TRAINING)
    n_best: int = attrs.field(default=20, validator=NATURAL, metadata=AFTER_TRAINING)
    null_threshold: float = attrs.field(default=0.0, converter=as_float, validator=NUMBER, metadata=AFTER_TRAINING)
    with_negative: bool | None = attrs.field(default=None, validator=optional(SWITCH), metadata=NOT_OF_FEATURES)
    language: str | None = attrs.field(default=None, validator=optional(one_of(ALIKE)), metadata=AFTER_TRAINING)

    def __attrs_post_init__(self) -> None:
        room = self.max_length - self.max_query_length - SPECIAL
        if room < 1:
            raise DataError(
                f"max_length {self.max_length} leaves no room for a context after a question of {SPECIAL} special and "
                f"{self.max_query_length} other tokens; use a larger max_length, or a smaller max_query_length"
            )
        if self.doc_stride >= room:
            raise DataError(
                f"doc_stride {self.doc_stride} is not less than the {room} tokens of a context in a window with the "
                f"longest question, so windows would not overlap; use a smaller one"
            )

    # -- data ---------------------------------------------------------------------------------------------------------

    def rows(self, path: str | Path, labelled: bool) -> Iterator[Question]:
        """Yield the questions of a file; see ``Task.rows``."""
        return file_questions(path, labelled)

    def line_rows(self, lines: Iterable[str]) -> Iterator[Question]:
        """Yield a question for each line."""
        return line_questions(lines)

    def fitted(self, path: str | Path) -> QuestionAnswering:
        """Return the task with the language, and whether there may be no answer."""
        questions = list(self.rows(path, labelled=True))
        answerable = sum(bool(question.answers) for question in questions)
        if not answerable:
            raise DataError(f"{path}: none of the questions has an answer; there is nothing to learn.")
        if not any(answer.stands_in(question.context) for question in questions for answer in question.answers):
            raise _all_off(path, next(question for question in questions if question.answers))
        negative = answerable < len(questions) if self.with_negative is None else self.with_negative
        language = self.language or language_of(question.text for question in questions)
        return attrs.evolve(self, with_negative=negative, language=language)

    def features(
        self, rows: Sequence[Question], tokenizer: Tokenizer, labelled: bool, notes: Counter[str]
    ) -> list[Example]:
        """Return an example for each window over a context (``windows.examples_of``); see ``Task.features``.

        Labelled ones have ``start`` and ``end``: the positions in the window of the answer's first and last token, or
        ``NOWHERE`` or ``UNKNOWN``.
        """
        encoded = tokenizer.windows(
            [question.text for question in rows],
            [question.context for question in rows],
            max_length=self.max_length,
            stride=self.doc_stride,
            max_first=self.max_query_length,
        )
        examples = []
        for row, (question, encodings) in enumerate(zip(rows, encoded, strict=True)):
            windows = Windows.of(encodings, self.doc_stride)
            note_cut(notes, question, windows, self.max_query_length)
            made = examples_of(windows, row)
            if labelled:
                for example, (start, end) in zip(made, targets(question, windows, notes).tolist(), strict=True):
                    example |= {"start": start, "end": end}
            examples += made
        return examples

    def unlearned(self, examples: Sequence[Example]) -> int:
        """Return the number of windows of questions whose answers are all at wrong positions."""
        return sum(example["start"] == UNKNOWN for example in examples)

    def collate(self, examples: Sequence[Example], pad_id: int) -> dict[str, Any]:
        """Make a batch: as ``batch_of``, with ``windows`` (the examples) and ``labels``, int64 ``[batch, 2]``."""
        batch = {**batch_of(examples, pad_id), "windows": list(examples)}
        if "start" in examples[0]:
            batch["labels"] = np.array([(example["start"], example["end"]) for example in examples], np.int64)
        return batch

    # -- learning and results -----------------------------------------------------------------------------------------

    def network(self, encoder: nn.Layer) -> Reader:
        """Put a ``Reader`` over an encoder."""
        from onion.tasks.networks.reader import Reader

        return Reader(encoder, self.n_best, self.max_answer_length)

    def decoding(self, weights: Mapping[str, np.ndarray]) -> Decode:
        """Give the best spans of each window; see ``Task.decoding``."""
        return partial(window_spans, most=self.n_best, longest=self.max_answer_length)

    def metric(self, path: str | Path) -> ReadingMetric:
        """Measure exact match and F1 by the rules of the language, also with the best thresholds."""
        questions = list(self.rows(path, labelled=True))
        language, found = self.language or "en", language_of(question.text for question in questions)
        if language != found:
            log.warning(
                "%s: the questions look like %s and are measured by the rules of %s; those of %s: --set language=%s",
                path, found, language, found, found,
            )  # fmt: skip
        return ReadingMetric(questions, self._find, ALIKE[language], bool(self.with_negative))

    def predictions(
        self, rows: Sequence[Question], examples: Sequence[Example], decoded: Sequence[Spans]
    ) -> Iterator[dict[str, Any]]:
        """Yield the answer to each question, and the next best ones."""
        windows: dict[int, list[Spans]] = {}
        for example, spans in zip(examples, decoded, strict=True):
            windows.setdefault(example["row"], []).append(spans)
        for row, question in enumerate(rows):
            found = self._find(question, windows[row])
            answer: dict[str, Any] = {"id": question.id, "answer": found.text}
            answer |= {"begin": found.begin, "end": found.end, "nbest": found.nbest}
            yield {**answer, "null_odds": round(found.null_odds, 6)} if self.with_negative else answer

    def files(self, predicted: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the files of BERT's and PALM's reading comprehension, by the ids of the questions."""
        files = {
            "predictions.json": {each["id"]: each["answer"] for each in predicted},
            "nbest_predictions.json": {each["id"]: each["nbest"] for each in predicted},
        }
        if self.with_negative:
            files["null_odds.json"] = {each["id"]: each["null_odds"] for each in predicted}
        return files

    def report(self, rows: Sequence[Question], predicted: Iterable[Mapping[str, Any]]) -> Report:
        """Return exact match and F1 of each question; see ``Task.report``."""
        return answers_report(rows, predicted, partial(score_of, alike=ALIKE[self.language or "en"]))

    def _find(self, question: Question, windows: Sequence[Spans]) -> Found:
        return find(question.context, windows, self.n_best, bool(self.with_negative), self.null_threshold)


def _all_off(path: str | Path, first: Question) -> DataError:
    answer = first.answers[0]
    return DataError(
        f"{path}: no answer is found at its answer_start, so there is nothing to learn; the first one is "
        f"{shown(answer.text)}, but the context has {shown(first.context[max(0, answer.start) :][: len(answer.text)])} "
        f"there. Positions count characters (code points) from 0, not bytes."
    )


def language_of(questions: Iterable[str]) -> str:
    """Return ``"zh"`` if at least half of the letters of the questions are Chinese, else ``"en"``."""
    letters = [letter for question in questions for letter in question if letter.isalpha()]
    chinese = sum("\u4e00" <= letter <= "\u9fff" for letter in letters)
    return "zh" if letters and chinese >= len(letters) / 2 else "en"
