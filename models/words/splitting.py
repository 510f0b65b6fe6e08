"""Texts -> words, by one of three ways to split them. Without Paddle.

``spaces``: a text that is segmented already, at white space; ``english``: lower-cased words, numbers and single signs;
``chinese``: words of jieba's dictionary, without its hidden Markov model for unknown ones, by ``rjieba``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from onion.errors import OnionError
from onion.models.words.names import CHINESE, ENGLISH, SPACES, UNKNOWN

SOME = 1000
"""Texts by which the splitting of a file is recognized."""

SEGMENTED = 3.0
"""Chinese characters without a break, on average, up to which texts count as segmented; words have about 1.5."""

_ENGLISH = re.compile(r"\[UNK\]|\w+(?:['’]\w+)*|[^\w\s]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_ASCII_WORD = re.compile(r"[!-~]+")


def splitter(splitting: str) -> Callable[[str], list[str]]:
    """Return the function that splits a text.

    Raises:
        OnionError: it is ``chinese``, and ``rjieba`` is not installed.
    """
    if splitting == SPACES:
        return _at_spaces
    return _english if splitting == ENGLISH else _Chinese(segmenter())


def joined(words: Iterable[str], splitting: str) -> str:
    """Return the text of some words; of Chinese ones without spaces, except between two words of ASCII."""
    if splitting != CHINESE:
        return " ".join(words)
    text, before = "", ""
    for word in words:
        text += f" {word}" if _ASCII_WORD.fullmatch(before) and _ASCII_WORD.fullmatch(word) else word
        before = word
    return text


def splitting_of(texts: Iterable[str]) -> str:
    """Recognize the splitting that suits some texts, by the first thousand.

    Texts of mostly Chinese letters are Chinese, or segmented already where their unbroken runs are short; other texts
    are split as English.
    """
    some = list(islice(texts, SOME))
    runs = [run for text in some for run in _HAN.findall(text)]
    han = sum(map(len, runs))
    if 2 * han <= sum(character.isalpha() for text in some for character in text):
        return ENGLISH
    return SPACES if han / len(runs) <= SEGMENTED and any(" " in text.strip() for text in some) else CHINESE


def segmenter() -> Any:
    """Return the module ``rjieba``.

    Raises:
        OnionError: it is not installed.
    """
    try:
        import rjieba
    except ModuleNotFoundError:
        raise OnionError("Chinese words need rjieba: pip install 'onion-paddle[chinese]'") from None
    return rjieba


def tagged(text: str) -> Iterator[tuple[str, str]]:
    """Yield the Chinese words of a text, as :func:`splitter` gives them, with their parts of speech (jieba's tags).

    Raises:
        OnionError: ``rjieba`` is not installed.
    """
    rjieba = segmenter()
    for part in text.lower().split(UNKNOWN.lower()):
        yield from ((word, tag) for word, tag in rjieba.tag(part, False) if word.strip())


def _at_spaces(text: str) -> list[str]:
    return text.split()


def _english(text: str) -> list[str]:
    return [word if word == UNKNOWN else word.lower() for word in _ENGLISH.findall(text)]


class _Chinese:
    def __init__(self, rjieba: Any) -> None:
        self._rjieba = rjieba

    def __call__(self, text: str) -> list[str]:
        words: list[str] = []
        for number, part in enumerate(text.split(UNKNOWN)):
            words += [UNKNOWN] * (number > 0)
            words += [word for word in self._rjieba.cut(part.lower(), False) if word.strip()]
        return words
