"""Questions about contexts, out of SQuAD's JSON and out of lines of text.

Sources: the files of SQuAD 1.1 (Rajpurkar et al. 2016) and 2.0 (Rajpurkar et al. 2018), whose form CMRC 2018, DRCD and
XQuAD share::

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

ADVICE = 'questions are read from JSON of SQuAD\'s form, {"data": [{"paragraphs": [...]}]}; mend the file or convert it'


@attrs.frozen
class Answer:
    """What the file says the answer is.

    Attributes:
        text: at least one character.
        start: where it begins in the context, in code points; some files are wrong about it.
    """

    text: str
    start: int

    @property
    def end(self) -> int:
        """Where it ends: behind its last character."""
        return self.start + len(self.text)

    def stands_in(self, context: str) -> bool:
        """Whether the text stands where the file says."""
        return self.start >= 0 and context.startswith(self.text, self.start)


@attrs.frozen
class Question:
    """A question about a context.

    Attributes:
        where: the place of it, for messages: ``file: data[0].paragraphs[0].qas[2] (id ...)`` or ``file:line``.
        id: predictions go by it.
        text: the question.
        context: holds the answer, if there is one.
        answers: all that count as right; none where the question cannot be answered, or where nothing is known.
    """

    where: str
    id: str
    text: str
    context: str
    answers: tuple[Answer, ...] = ()

    def error(self, what: str) -> DataError:
        """Return the error to raise when this question is wrong."""
        return DataError(f"{self.where}: {what}")


def file_questions(path: str | Path, labelled: bool) -> Iterator[Question]:
    """Give the questions of a file of SQuAD's form one by one.

    Args:
        path: the file; it is in memory as a whole.
        labelled: whether answers are asked for. ``is_impossible`` may be missing; ``plausible_answers`` are ignored.

    Raises:
        DataError: the file is not what it should be, has no question, or two of the same id; the message says where.
    """
    places: dict[str, str] = {}
    for article in read_json(path, ADVICE)["data"].items():
        for paragraph in article["paragraphs"].items():
            context = paragraph["context"].text()
            for place in paragraph["qas"].items():
                question = _question(place, context, labelled)
                if question.id in places:
                    raise question.error(f"the id is that of {places[question.id]} too; predictions go by it")
                places[question.id] = place.path
                yield question
    if not places:
        raise DataError(f"{path}: there are no questions in the file; it needs at least one")


def line_questions(lines: Iterable[str]) -> Iterator[Question]:
    """Give a question for each line.

    Args:
        lines: each a JSON object with ``question``, ``context`` and perhaps ``id``, or these with tabs between them.
            Where there is no ``id``, it is the number of the line.

    Raises:
        DataError: a line is something else, or has the id of another one; it is named.
    """
    taken: dict[str, int] = {}
    for row in line_rows(lines, ["question", "context"], ["id"]):
        own = row.word("id") if "id" in row.cells else str(row.line)
        if own in taken:
            raise row.error(f"the id {shown(own)} is that of line {taken[own]} too; predictions go by it, give another")
        taken[own] = row.line
        yield Question(f"{row.path}:{row.line}", own, row.text("question"), row.text("context"))


def _question(place: Place, context: str, labelled: bool) -> Question:
    own = place["id"].word()
    place = place.called(f"id {printable(own[:LONGEST])}")
    answers = _answers(place) if labelled else ()
    return Question(str(place), own, place["question"].text(), context, answers)


def _answers(place: Place) -> tuple[Answer, ...]:
    impossible = "is_impossible" in place and place["is_impossible"].truth()
    # DuReader writes an empty text where there is no answer.
    given = [each for each in place["answers"].items() if not (impossible and each["text"].text() == "")]
    answers = tuple(_answer(each) for each in given)
    if "is_impossible" in place and impossible == bool(answers):
        there = f"there are {len(answers)} answers" if answers else "there is no answer"
        raise place.error(f"is_impossible is {'true' if answers else 'false'}, but {there}; mend one of them")
    return answers


def _answer(place: Place) -> Answer:
    text = place["text"].text()
    if not text:
        raise place.error('the text is empty; a question that cannot be answered has "answers": []')
    return Answer(text, place["answer_start"].whole())
