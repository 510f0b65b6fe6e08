"""Check the arguments of a tokenizer, and prepare texts for the library. Without Paddle."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import numpy as np

from onion.errors import DataError

Texts = Sequence[str] | Sequence[Sequence[str]]
Given = Iterable[str] | Iterable[Sequence[str]]

# More tokens than any text has; the library does not accept larger numbers.
LONGEST = 1 << 31


@attrs.frozen
class Prepared:
    """Texts as input of the library.

    Attributes:
        inputs: for each text a string or, if ``split``, a list of strings.
        split: whether the inputs are lists of strings, which the library does not join.
        places: for each text int64 [strings, 3]: begin and end in the text (in the given word, if texts are lists of
            words), and the number of their word; None if the library's own offsets and words are right.
    """

    inputs: list[Any]
    split: bool
    places: list[np.ndarray] | None = None


class Preparation(Protocol):
    """The preparation of texts for one kind of tokenizer.

    Attributes:
        settings: the part of ``tokenizer_config.json`` by which the files are recognized.
    """

    settings: Mapping[str, Any]

    def __call__(self, texts: Texts, pre_split: bool, offsets: bool) -> Prepared:
        """Prepare texts.

        Args:
            texts: strings, or lists of words.
            pre_split: whether they are lists.
            offsets: whether offsets and words will be requested.

        Raises:
            DataError: a text cannot be prepared; the message has its number.
        """

    def files(self) -> Mapping[str, bytes]:
        """Return file name -> content of the files to save instead of ``tokenizer.json``; empty if that is complete."""


def regroup(values: Sequence[Any], texts: Texts) -> list[list[Any]]:
    """Group the values of all words into a list for each text."""
    rest = iter(values)
    return [[next(rest) for _ in text] for text in texts]


def listed(texts: Iterable[Any]) -> list[Any]:
    """Return the texts of any iterable as a list; raise a DataError for a single text, or what is not iterable."""
    if isinstance(texts, (str, bytes)):
        raise DataError("give a list of texts, not one text")
    try:
        return list(texts)
    except TypeError as error:
        raise DataError(f"give a list of texts, not {type(texts).__name__} {str(texts)[:20]}") from error


def checked(texts: Given, pairs: Given | None, pre_split: bool) -> tuple[Texts, Texts | None]:
    """Return texts and pairs as lists of strings or, if ``pre_split``, of lists of words; or raise a DataError."""
    texts, pairs = listed(texts), None if pairs is None else listed(pairs)
    if pairs is not None and len(texts) != len(pairs):
        raise DataError(f"{len(texts)} texts and {len(pairs)} pairs do not match")
    wanted, called = ((list, tuple), "a list of words") if pre_split else (str, "a string")
    for name, values in (("text", texts), ("pair", pairs or ())):
        for index, value in enumerate(values):
            if not isinstance(value, wanted):
                raise DataError(f"{name} {index} is a {type(value).__name__}, not {called}")
            if pre_split and not all(isinstance(word, str) for word in value):
                odd = next(word for word in value if not isinstance(word, str))
                raise DataError(f"{name} {index} contains a {type(odd).__name__}, not only words")
    return texts, pairs


def whole(name: str, value: Any) -> int:
    """Return a whole number, possibly numpy's, as int; raise a DataError that begins with the name otherwise."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise DataError(f"{name} {value!r} is not a whole number")
