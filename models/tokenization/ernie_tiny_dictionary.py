"""ERNIE tiny's ``dict.wordseg.pickle``: the words into which a text is split before SentencePiece. Without Paddle.

Sources: PaddleNLP 2.8.1 ``transformers/ernie/tokenizer.py``; static-graph ERNIE ``utils/data.py`` (``WSSPTokenizer``),
which reads a pickle of Python 2 as UTF-8.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path

from onion.errors import WeightsError
from onion.models.formats.pickle_containers import read_containers

WINDOW = 5  # characters; longer words are never found


class WordDictionary:
    """Splits texts into words: at each position the longest known word, else one character.

    Args:
        words: the known words.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words = frozenset(words)
        # Only positions where a longer word may begin need a lookup: any character is a word.
        lengths: dict[str, set[int]] = {}
        for word in self.words:
            if 1 < len(word) <= WINDOW:
                lengths.setdefault(word[0], set()).add(len(word))
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}

    def cut(self, text: str) -> list[str]:
        """Return the words of a text, which together are the text."""
        words, lengths = self.words, self._lengths
        found = []
        begin, end = 0, len(text)
        while begin < end:
            word = text[begin]
            for length in lengths.get(word, ()):
                longer = text[begin : begin + length]
                if longer in words:
                    word = longer
                    break
            found.append(word)
            begin += len(word)
        return found

    def to_bytes(self) -> bytes:
        """Return a pickle of a dict, word -> number, sorted by word, which any Python reads."""
        return pickle.dumps({word: number for number, word in enumerate(sorted(self.words))}, protocol=2)


def read_dictionary(path: Path) -> WordDictionary:
    """Read a pickled dict whose keys are the words, or set, list or tuple of them, without executing anything.

    Raises:
        WeightsError: the file is missing or damaged, or contains something other than words in Unicode or UTF-8.
    """
    stored = read_containers(path)
    if not isinstance(stored, (dict, set, frozenset, list, tuple)):
        raise WeightsError(f"{path}: contains a {type(stored).__name__}, not a dict, set or list of words")
    return WordDictionary([_word(path, number, word) for number, word in enumerate(stored)])


def _word(path: Path, number: int, word: object) -> str:
    if isinstance(word, bytes):
        try:
            word = word.decode("utf-8")
        except UnicodeDecodeError as error:
            raise WeightsError(f"{path}: entry {number} is not UTF-8; encode the dictionary in UTF-8") from error
    if not isinstance(word, str):
        raise WeightsError(f"{path}: entry {number} is a {type(word).__name__}, not a word")
    return word
