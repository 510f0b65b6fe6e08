"""The report of tasks that find chunks, such as names, in texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from onion.tasks.data.rows import Row
from onion.tasks.reports.classes import Classes
from onion.tasks.reports.errors import NAME, PLACE, placed
from onion.tasks.reports.matrix import Matrix
from onion.tasks.reports.report import Report, Sheet

NONE = "O"
"""Where only one side has a chunk."""

Span = Mapping[str, Any]
"""A chunk: its ``type``, and its ``begin`` and ``end`` in the text, in code points."""


@attrs.frozen
class ChunkedText:
    """A text with its true and its predicted chunks.

    Attributes:
        row: the row it was read from.
        text: the text.
        words: begin and end of each word.
        probabilities: of the tag that was predicted for each word.
        true: the true chunks.
        predicted: the predicted ones.
    """

    row: Row
    text: str
    words: Sequence[tuple[int, int]]
    probabilities: Sequence[float]
    true: Sequence[Span]
    predicted: Sequence[Span]

    def confidence(self, begin: int, end: int) -> float:
        """Return the mean probability of the tags that were predicted for the words of a place."""
        words = zip(self.words, self.probabilities, strict=True)
        inside = [chance for (first, last), chance in words if begin <= first and last <= end]
        return round(sum(inside) / max(len(inside), 1), 6)


@attrs.frozen
class Place:
    """A place in a text where there is, or was predicted, a chunk.

    Attributes:
        text: the text.
        begin, end: of the chunk.
        label: its true type, or NONE.
        predicted: the type that was predicted, or NONE.
    """

    text: ChunkedText
    begin: int
    end: int
    label: str
    predicted: str

    def cells(self) -> list[Any]:
        """Return the cells of :data:`COLUMNS`."""
        chunk, confidence = self.text.text[self.begin : self.end], self.text.confidence(self.begin, self.end)
        place = [*placed(self.text.row), self.begin, self.end, chunk]
        return [*place, self.label, self.predicted, confidence, self.text.text]


COLUMNS = (*PLACE, "begin", "end", "chunk", "label", "predicted", "confidence", "text_a")


def chunks_report(kinds: Sequence[str], texts: Sequence[ChunkedText]) -> Report:
    """Return the figures of each type, how types are confused, and the wrong chunks, the most confident first.

    A chunk is right if begin, end and type are. In the matrix, a chunk with a wrong border stands twice: in the column
    of NONE the true one, in the row of NONE the predicted one. Types that neither occur nor are predicted are left out,
    as in seqeval.

    Args:
        kinds: all types.
        texts: of a file.
    """
    places = [place for text in texts for place in _places(text)]
    found = {kind for place in places for kind in (place.label, place.predicted)}
    names = [kind for kind in kinds if kind in found]
    numbers = {name: number for number, name in enumerate([*names, NONE])}
    sides = ([numbers[place.label] for place in places], [numbers[place.predicted] for place in places])
    matrix = Matrix.square([*names, NONE], *(np.array(side, np.int64) for side in sides))
    counts = matrix.counts
    classes = Classes(names, np.diag(counts)[:-1], counts.sum(axis=1)[:-1], counts.sum(axis=0)[:-1])
    wrong = [place.cells() for place in places if place.label != place.predicted]
    wrong.sort(key=lambda cells: -cells[COLUMNS.index("confidence")])
    return Report(
        summary={"per_class": classes.scores(), "averages": classes.averages(), "errors": len(wrong)},
        sheets={"per_class.csv": classes.sheet(), "confusion_matrix.csv": matrix.sheet(), NAME: Sheet(COLUMNS, wrong)},
        pictures={"confusion_matrix.svg": matrix.picture()},
    )


def _places(text: ChunkedText) -> Iterator[Place]:
    """Yield every place that has a chunk on either side, in order."""
    wanted, found = (
        {(span["begin"], span["end"]): span["type"] for span in side} for side in (text.true, text.predicted)
    )
    for begin, end in sorted(wanted.keys() | found.keys()):
        yield Place(text, begin, end, wanted.get((begin, end), NONE), found.get((begin, end), NONE))
