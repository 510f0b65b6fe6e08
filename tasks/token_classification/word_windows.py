"""Texts of any length as windows of tokens, in which each word is represented by one token of one window.

The token is the word's first (BERT, Devlin et al. 2018, section 5.3). Where windows overlap, a word belongs to the one
in which it has more context on both sides: the border is in the middle of the overlap. That is the "max context" of
google-research/bert ``run_squad.py``, except that the ends of the text do not count as cuts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import attrs
import numpy as np

from onion.models.tokenizer import Encoding, Tokenizer

STAND_IN = "□"
"""Replaces words that have no token, such as control characters, so that every word has a position. This sign for a
character that cannot be displayed is in every vocabulary, or unknown to it."""


@attrs.frozen
class WordWindow:
    """A window over the tokens of a text, and the words that begin in it.

    Attributes:
        encoding: the tokens.
        firsts: int64 [words], the position in the window of each word.
        word: the index of the first of these words in the text.
        own: begin and end of the words that belong to this window, counted among these words; at least one.
    """

    encoding: Encoding
    firsts: np.ndarray
    word: int
    own: tuple[int, int]


def word_windows(
    tokenizer: Tokenizer, texts: Sequence[Sequence[str]], max_length: int, stride: int
) -> list[list[WordWindow]]:
    """Return the windows of each text; every word belongs to one, in order. A text without words has a stand-in.

    Args:
        tokenizer: splits the words.
        texts: the words of each.
        max_length: the maximum number of tokens of a window, including special ones.
        stride: tokens between the starts of consecutive windows.

    Raises:
        DataError: see ``Tokenizer.windows``.
    """
    texts = [words or [STAND_IN] for words in texts]
    split = partial(tokenizer.windows, max_length=max_length, stride=stride, pre_split=True)
    found = split(texts)
    held = [_words_in(windows) for windows in found]
    gaps = [place for place, words in enumerate(texts) if len(held[place]) < len(words)]
    for place, windows in zip(gaps, split([_filled(texts[place], held[place]) for place in gaps]), strict=True):
        found[place] = windows
    return [list(_shared_out(windows, stride)) for windows in found]


def _words_in(windows: Sequence[Encoding]) -> set[int]:
    """Return the indices of the words that have a token."""
    return set().union(*(window.alignment[1].tolist() for window in windows)) - {-1}


def _filled(words: Sequence[str], held: set[int]) -> list[str]:
    return [word if number in held else STAND_IN for number, word in enumerate(words)]


def _shared_out(windows: Sequence[Encoding], stride: int) -> Iterator[WordWindow]:
    numbers = [window.alignment[1] for window in windows]
    inside = [np.flatnonzero(each >= 0) for each in numbers]  # without special tokens
    begins = min(stride, len(inside[0])) * np.arange(len(windows))
    ends = begins + [len(tokens) for tokens in inside]
    words = np.empty(ends[-1], np.int64)  # of all tokens of the text
    for begin, end, tokens, each in zip(begins, ends, inside, numbers, strict=True):
        words[begin:end] = each[tokens]
    firsts = np.flatnonzero(np.diff(words, prepend=-1))
    borders = np.searchsorted(firsts, [0, *(begins[1:] + ends[:-1]) // 2, ends[-1]])
    for number, window in enumerate(windows):
        own, here = borders[number : number + 2], np.searchsorted(firsts, [begins[number], ends[number]])
        if own[0] < own[1]:
            places = inside[number][firsts[slice(*here)] - begins[number]]
            first = int(here[0])
            yield WordWindow(window, places, first, (int(own[0]) - first, int(own[1]) - first))
