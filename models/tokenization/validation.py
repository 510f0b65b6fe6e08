"""What a tokenizer is called with, looked at before anything is done with it. Without Paddle."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from onion.errors import DataError
from onion.models.tokenization.pre_tokenizer import Texts

# As many tokens as no text has: the library takes no number of any size.
LONGEST = 1 << 31

Given = Iterable[str] | Iterable[Sequence[str]]


def listed(texts: Iterable[Any]) -> list[Any]:
    """The texts of any iterable, a generator too, as a list: they are gone through more than once.

    Raises:
        DataError: one text, or nothing that can be gone through.
    """
    if isinstance(texts, (str, bytes)):
        raise DataError("give a list of texts, not one text")
    try:
        return list(texts)
    except TypeError as error:
        raise DataError(f"give a list of texts, not {type(texts).__name__} {str(texts)[:20]}") from error


def checked(texts: Given, pairs: Given | None, pre_split: bool) -> tuple[Texts, Texts | None]:
    """The texts and their pairs as lists of strings or, where ``pre_split``, of lists of words.

    Raises:
        DataError: they are something else, or not of the same number.
    """
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
                raise DataError(f"{name} {index} holds a {type(odd).__name__}, not words only")
    return texts, pairs


def whole(name: str, value: Any) -> int:
    """A whole number, numpy's too.

    Raises:
        DataError: it is none; the message begins with the name.
    """
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise DataError(f"{name} {value!r} is not a whole number")
