"""Texts as words with offsets and, if labelled, tags; and label maps.

A row has its words in ``text_a`` and their tags in ``label``, joined by U+0002 (the format of PaddlePALM and ERNIE) or,
in .jsonl, as lists. The "words" may be single characters, as in most Chinese files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import attrs

from onion.errors import DataError
from onion.messages import shown
from onion.tasks.data.labels import Labels
from onion.tasks.data.rows import Row
from onion.tasks.data.texts import TEXT
from onion.tasks.question_answering.json_value import read_json

TAGS = "label"
LABEL_MAP = "label_map.json"
"""The file beside the training file with labels and their numbers, as in PaddlePALM and ERNIE."""
JOINT = "\x02"
_CHARACTERS, _WORDS = re.compile(r"\S"), re.compile(r"\S+")


@attrs.frozen
class TaggedText:
    """A text and its words.

    Attributes:
        row: the row it was read from.
        text: the text.
        places: begin and end of each word in the text, in code points.
        tags: of the words; empty if the row is not labelled.
    """

    row: Row
    text: str
    places: Sequence[tuple[int, int]]
    tags: Sequence[str] = ()

    @classmethod
    def plain(cls, row: Row, characters: bool) -> TaggedText:
        """Split a text into its characters except whitespace, or into words at whitespace."""
        text = row.text(TEXT)
        found = (_CHARACTERS if characters else _WORDS).finditer(text)
        return cls(row, text, [match.span() for match in found])

    @classmethod
    def of_words(cls, row: Row, words: Sequence[str], characters: bool, tags: Sequence[str] = ()) -> TaggedText:
        """Join words to a text: characters with nothing between them, other words with a space."""
        between = "" if characters else " "
        ends = list(accumulate(words, lambda end, word: end + len(between) + len(word), initial=-len(between)))[1:]
        places = [(end - len(word), end) for end, word in zip(ends, words, strict=True)]
        return cls(row, between.join(words), places, tags)

    @property
    def words(self) -> list[str]:
        """The words, exactly as in the text."""
        return [self.text[begin:end] for begin, end in self.places]


def labelled_text(row: Row, characters: bool) -> TaggedText:
    """Read words and tags; a text without U+0002 is one word, and whitespace around tags is ignored.

    Raises:
        DataError: there is no word, a word or a tag is not a string, a tag is empty or (unless in a list) contains
            whitespace, or the numbers of words and tags differ.
    """
    words, tags = _listed(row, TEXT), [tag.strip() for tag in _listed(row, TAGS)]
    if not isinstance(row.cells[TAGS], list):
        _refuse_spaces(row, tags)
    if len(words) != len(tags):
        raise _uneven(row, len(words), len(tags))
    if not words:
        raise row.error("this row has no words; remove it")
    if "" in tags:
        raise row.error(f"tag {tags.index('') + 1} is empty; give every word a tag, such as O")
    return TaggedText.of_words(row, words, characters, tags)


def unlabelled_text(row: Row, characters: bool) -> TaggedText:
    """Read a list of words or words joined by U+0002, or split a plain text.

    Raises:
        DataError: a word or the text is not a string.
    """
    given = row.cells[TEXT]
    if isinstance(given, list) or (isinstance(given, str) and JOINT in given):
        return TaggedText.of_words(row, _listed(row, TEXT), characters)
    return TaggedText.plain(row, characters)


def _listed(row: Row, column: str) -> list[str]:
    value = row.cells[column]
    if not isinstance(value, list):
        return row.text(column).split(JOINT)
    parts = Row(row.path, row.line, {f"{column}[{number}]": part for number, part in enumerate(value)})
    return [parts.text(name) for name in parts.cells]


def _refuse_spaces(row: Row, tags: Sequence[str]) -> None:
    """Refuse tags with spaces: they look like several tags, but would be the single tag of a single word."""
    for number, tag in enumerate(tags, start=1):
        if len(tag.split()) > 1:
            wrong = f"tag {number} in {TAGS}, {shown(tag)}, contains whitespace"
            raise row.error(f"{wrong}; join words and tags by U+0002, or give them as lists in .jsonl")


def _uneven(row: Row, words: int, tags: int) -> DataError:
    joint = "join both by U+0002, or use lists in .jsonl"
    return row.error(f"{TEXT} has {words} words, but {TAGS} has {tags} tags; {joint}")


def read_label_map(path: Path) -> Labels:
    """Read a label map, ``{label: number}``; the numbers are 0, 1, 2, ... in any order.

    Raises:
        DataError: the file cannot be read or is invalid.
    """
    numbers = read_json(path).value
    if not isinstance(numbers, dict) or not numbers or any(type(number) is not int for number in numbers.values()):
        raise DataError(f'{path}: is not a label map, such as {{"O": 0, "B-PER": 1}}; write a number for each label')
    names = sorted(numbers, key=numbers.__getitem__)
    wrong = [(name, place) for place, name in enumerate(names) if numbers[name] != place]
    if wrong:
        name, place = wrong[0]
        raise DataError(
            f"{path}: no label has the number {place}, and {shown(name)} has {numbers[name]}; "
            f"number the {len(names)} labels from 0 to {len(names) - 1}, each number once"
        )
    return Labels(names)
