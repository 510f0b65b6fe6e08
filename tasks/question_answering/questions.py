"""Questions about contexts, from SQuAD's JSON and from lines of text.

Sources: the format of SQuAD 1.1 (Rajpurkar et al. 2016) and 2.0 (Rajpurkar et al. 2018), also used by CMRC 2018, DRCD
and XQuAD::

    {"data": [{"paragraphs": [{"context": "...", "qas": [
        {"id": "...", "question": "...", "answers": [{"text": "...", "answer_start": 5}], "is_impossible": false}]}]}]}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from onion.errors import DataError
from onion.messages import LONGEST, printable, shown
from onion.tasks.data.rows import line_rows
from onion.tasks.question_answering.json_value import Place, read_json

ADVICE = 'questions are read from SQuAD\'s JSON, {"data": [{"paragraphs": [...]}]}; correct or convert the file'


@attrs.frozen
class Answer:
    """An answer in a file.

    Attributes:
        text: at least one character.
        start: its begin in the context, in code points, which is wrong in some files.
    """

    text: str
    start: int

    @property
    def end(self) -> int:
        """The position after its last character."""
        return self.start + len(self.text)

    def stands_in(self, context: str) -> bool:
        """Tell whether the text is at its position."""
        return self.start >= 0 and context.startswith(self.text, self.start)


@attrs.frozen
class Question:
    """A question about a context.

    Attributes:
        where: its place, for messages: ``file: data[0].paragraphs[0].qas[2] (id ...)`` or ``file:line``.
        id: identifies it in predictions.
        text: the question.
        context: has the answer, if there is one.
        answers: all correct answers; none if the question cannot be answered, or the answers are unknown.
    """

    where: str
    id: str
    text: str
    context: str
    answers: tuple[Answer, ...] = ()

    def error(self, what: str) -> DataError:
        """Return an error with the place of the question."""
        return DataError(f"{self.where}: {what}")


def file_questions(path: str | Path, labelled: bool) -> Iterator[Question]:
    """Yield the questions of a file in SQuAD's format.

    Args:
        path: the file, which is read into memory as a whole.
        labelled: whether to read answers. ``is_impossible`` may be missing; ``plausible_answers`` are ignored.

    Raises:
        DataError: the file is invalid, has no question, or duplicate ids; the message has the place.
    """
    for article in file_articles(path, labelled):
        yield from article


def file_articles(path: str | Path, labelled: bool) -> Iterator[list[Question]]:
    """Yield the questions of each article of a file in SQuAD's format; see :func:`file_questions`."""
    places: dict[str, str] = {}
    for article in read_json(path, ADVICE)["data"].items():
        yield [*_of_article(article, labelled, places)]
    if not places:
        raise DataError(f"{path}: there are no questions in the file; it needs at least one")


def _of_article(article: Place, labelled: bool, places: dict[str, str]) -> Iterator[Question]:
    """Yield the questions of an article; ``places`` has the places of all ids so far."""
    for paragraph in article["paragraphs"].items():
        context = paragraph["context"].text()
        for place in paragraph["qas"].items():
            question = _question(place, context, labelled)
            if question.id in places:
                raise question.error(f"the id is also that of {places[question.id]}; predictions need unique ids")
            places[question.id] = place.path
            yield question


def line_questions(lines: Iterable[str]) -> Iterator[Question]:
    """Yield a question for each line.

    Args:
        lines: JSON objects with ``question``, ``context`` and optionally ``id``, or these values separated by tabs. The
            default ``id`` is the number of the line.

    Raises:
        DataError: a line is invalid, or has the id of another one; it is named.
    """
    taken: dict[str, int] = {}
    for row in line_rows(lines, ["question", "context"], ["id"]):
        own = row.word("id") if "id" in row.cells else str(row.line)
        if own in taken:
            raise row.error(f"the id {shown(own)} is also that of line {taken[own]}; predictions need unique ids")
        taken[own] = row.line
        yield Question(f"{row.path}:{row.line}", own, row.text("question"), row.text("context"))


def _question(place: Place, context: str, labelled: bool) -> Question:
    own = place["id"].word()
    place = place.called(f"id {printable(own[:LONGEST])}")
    answers = _answers(place) if labelled else ()
    return Question(str(place), own, place["question"].text(), context, answers)


def _answers(place: Place) -> tuple[Answer, ...]:
    impossible = "is_impossible" in place and place["is_impossible"].truth()
    # DuReader writes an empty text if there is no answer.
    given = [each for each in place["answers"].items() if not (impossible and each["text"].text() == "")]
    answers = tuple(_answer(each) for each in given)
    if "is_impossible" in place and impossible == bool(answers):
        there = f"there are {len(answers)} answers" if answers else "there is no answer"
        raise place.error(f"is_impossible is {'true' if answers else 'false'}, but {there}; correct one of them")
    return answers


def _answer(place: Place) -> Answer:
    text = place["text"].text()
    if not text:
        raise place.error('the text is empty; a question that cannot be answered has "answers": []')
    return Answer(text, place["answer_start"].whole())
