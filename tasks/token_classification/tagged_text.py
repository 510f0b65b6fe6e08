"""Texts as words with offsets and, if labelled, tags; and label maps.

A row has its words in ``text_a`` and their tags in ``label``, joined by U+0002 (the format of PaddlePALM and ERNIE) or,
in .jsonl, as lists. The "words" may be single characters, as in most Chinese files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from unicodedata import category

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
_PUNCTUATION = "PS"
"""First letters of Unicode's categories of punctuation and symbols."""


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
    def plain(cls, row: Row, characters: bool, punctuation: bool = False) -> TaggedText:
        """Split a text into its characters except whitespace, or into words at whitespace.

        Args:
            row: has the text.
            characters: into which of both.
            punctuation: whether each punctuation mark or symbol at the ends of a word is a word of its own.
        """
        text = row.text(TEXT)
        places = [match.span() for match in (_CHARACTERS if characters else _WORDS).finditer(text)]
        if punctuation and not characters:
            places = [place for begin, end in places for place in _parted(text, begin, end)]
        return cls(row, text, places)

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


def is_punctuation(word: str) -> bool:
    """Tell whether a word is nothing but punctuation marks and symbols."""
    return bool(word) and all(category(each)[0] in _PUNCTUATION for each in word)


def _parted(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the marks before a word, the word, and the marks after it."""
    first = next((place for place in range(begin, end) if not is_punctuation(text[place])), end)
    last = next((place for place in range(end, first, -1) if not is_punctuation(text[place - 1])), first)
    yield from ((place, place + 1) for place in range(begin, first))
    if first < last:
        yield first, last
    yield from ((place, place + 1) for place in range(last, end))


def unlabelled_text(row: Row, characters: bool, punctuation: bool = False) -> TaggedText:
    """Read a list of words or words joined by U+0002, or split a plain text as :meth:`TaggedText.plain` does.

    Raises:
        DataError: a word or the text is not a string.
    """
    given = row.cells[TEXT]
    if isinstance(given, list) or (isinstance(given, str) and JOINT in given):
        return TaggedText.of_words(row, _listed(row, TEXT), characters)
    return TaggedText.plain(row, characters, punctuation)


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
