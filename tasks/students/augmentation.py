"""Altered copies of texts, which a teacher labels: ERNIE's data augmentation.

Each copy is made in one of three ways (ERNIE ``distill/README``; the first and the last are of Tang et al. 2019,
"Distilling Task-Specific Knowledge from BERT into Simple Neural Networks", section 3.3):

* each word becomes the unknown word with a probability of 0.1;
* each word is replaced, with a probability of 0.1, by a word of the same part of speech from the data set itself, the
  more likely the more frequent it is there (Chinese only: parts of speech are jieba's);
* of all words, a span of random length is kept.

A copy is a function of the seed, the example and the number of the copy, whatever was drawn before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from random import Random

import attrs

from onion.errors import DataError
from onion.models.words.names import CHINESE, UNKNOWN
from onion.models.words.splitting import joined, splitter, tagged

CHANCE = 0.1
"""The probability of each word to be replaced."""

UNKNOWN_WORDS, SAME_PART, SPAN = "unknown", "same_part", "span"


@attrs.frozen(eq=False)
class PartsOfSpeech:
    """The words of a data set by their part of speech.

    Attributes:
        tags: word -> its most frequent part of speech.
        words: part of speech -> its words.
        ends: part of speech -> the sums of the counts up to each word.
    """

    tags: Mapping[str, str]
    words: Mapping[str, Sequence[str]]
    ends: Mapping[str, Sequence[int]]

    @classmethod
    def of(cls, texts: Iterable[str]) -> PartsOfSpeech:
        """Count the Chinese words of some texts.

        Raises:
            OnionError: ``rjieba`` is not installed.
        """
        counts = Counter(pair for text in texts for pair in tagged(text))
        tags: dict[str, str] = {}
        by_tag: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for (word, tag), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            tags.setdefault(word, tag)
            by_tag[tag].append((word, count))
        words = {tag: [word for word, _ in found] for tag, found in by_tag.items()}
        return cls(tags, words, {tag: list(accumulate(count for _, count in each)) for tag, each in by_tag.items()})

    def like(self, word: str, chance: Random) -> str:
        """Return a random word of the same part of speech; a word that the data set does not have as it is."""
        tag = self.tags.get(word)
        return word if tag is None else chance.choices(self.words[tag], cum_weights=self.ends[tag])[0]


class Augmentation:
    """Make altered copies of texts.

    Args:
        texts: those of the data set, whose words replace others.
        splitting: one of ``onion.models.words.names.SPLITTINGS``.
        seed: of all copies.
        weights: way -> how often it is drawn, in proportion. Default: all that the splitting allows equally often.
        unknown: what the unknown word is written as. Default ``[UNK]``.

    Raises:
        DataError: a way is unknown, or no weight is above 0.
        OnionError: the splitting is ``chinese``, and ``rjieba`` is not installed.
    """

    def __init__(
        self,
        texts: Iterable[str],
        splitting: str,
        seed: int,
        weights: Mapping[str, float] | None = None,
        unknown: str = UNKNOWN,
    ) -> None:
        self._splitting, self._seed, self._split = splitting, seed, splitter(splitting)
        self._unknown_word = unknown
        ways: dict[str, Callable[[list[str], Random], list[str]]] = {UNKNOWN_WORDS: _unknown, SPAN: _span}
        if splitting == CHINESE:
            self._parts = PartsOfSpeech.of(texts)
            ways[SAME_PART] = self._same_part
        weights = dict.fromkeys(ways, 1.0) if weights is None else weights
        odd = [name for name in weights if name not in ways]
        if odd or not sum(weights.values()) > 0:
            told = f"unknown way {odd[0]!r}" if odd else "every weight is 0"
            raise DataError(f"augmentation: {told}; with {splitting!r} words the ways are {', '.join(ways)}")
        self._ways, self._weights = [ways[name] for name in weights], list(weights.values())

    def __call__(self, texts: Sequence[str], example: int, copy: int) -> list[str]:
        """Return an altered copy of the texts of an example, all of them altered in the same way.

        Args:
            texts: one, or two of a pair.
            example: its number.
            copy: the number of the copy.
        """
        chance = Random(f"{self._seed} {example} {copy}")  # noqa: S311  nothing secret
        way = chance.choices(self._ways, self._weights)[0]
        altered = (joined(way(self._split(text), chance), self._splitting) for text in texts)
        return [text.replace(UNKNOWN, self._unknown_word) for text in altered]

    def _same_part(self, words: list[str], chance: Random) -> list[str]:
        return [self._parts.like(word, chance) if chance.random() < CHANCE else word for word in words]


def _unknown(words: list[str], chance: Random) -> list[str]:
    return [UNKNOWN if chance.random() < CHANCE else word for word in words]


def _span(words: list[str], chance: Random) -> list[str]:
    """Keep a span: of any length from one word to all, anywhere."""
    if not words:
        return words
    length = chance.randint(1, len(words))
    begin = chance.randint(0, len(words) - length)
    return words[begin : begin + length]
