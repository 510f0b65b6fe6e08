"""Units of texts, in characters -> the flags of their tokens (``flags.py``).

Many paragraphs are done at once: their characters and tokens are laid side by side, so that numpy is called a few times
a batch and not a few times a paragraph.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.models.tokenizer import Encoding
from onion.tasks.pretraining.corpus.flags import (
    CAPITAL,
    ENTITY,
    IN_ENTITY,
    IN_PARAGRAPH,
    IN_PHRASE,
    IN_SENTENCE,
    IN_WORD,
    PHRASE,
    Flags,
)
from onion.tasks.pretraining.corpus.segmentation.sentences import sentences
from onion.tasks.pretraining.corpus.segmentation.spans import NONE, Spans, Units

Bools = NDArray[np.bool_]


def token_flags(paragraphs: Sequence[str], encodings: Sequence[Encoding], spans: Sequence[Spans]) -> list[Flags]:
    """Return the flags of each paragraph's tokens, uint8 ``[length of its encoding]``.

    The pieces of a word that the tokenizer has found stay together, whatever the segmenter says. No unit cuts another
    (``Spans.unified``). No unit crosses a sentence: it ends there, and another one begins. A sentence begins no earlier
    than a word of the tokenizer. Special tokens have no flags.

    Args:
        paragraphs: the texts, whole.
        encodings: of each, with offsets; special tokens may stand around the text.
        spans: the units of each.
    """
    if not encodings:
        return []
    flags = np.zeros(sum(map(len, encodings)), np.uint8)
    tokens = _Tokens.of(paragraphs, encodings)
    if len(tokens.begins):
        flags[tokens.places] = _flags(paragraphs, tokens, spans)
    return np.split(flags, np.cumsum([len(each) for each in encodings])[:-1])


def continued(begins: np.ndarray, ends: np.ndarray, units: Units) -> Bools:
    """Return whether each token goes on with the unit of the token before, bool ``[tokens]``.

    Args:
        begins: the first character of each token, ascending.
        ends: one more than its last character.
        units: in characters.
    """
    found = np.zeros(len(begins), bool)
    if len(units) and len(begins):
        unit = np.searchsorted(units[:, 1], begins[1:], side="right")  # the one that holds the character, or follows it
        known = np.append(units[:, 0], np.iinfo(np.int32).max)[unit]
        found[1:] = known < np.maximum(ends[:-1], begins[:-1] + 1)
    return found


@attrs.frozen(eq=False)
class _Tokens:
    """The tokens of all paragraphs that are not special ones.

    Attributes:
        places: of each among all tokens, int64 ``[tokens]``.
        begins, ends: its characters in the joined paragraphs, int64 ``[tokens]``.
        in_paragraph, in_word: whether it goes on with the paragraph, or the tokenizer's word, of the token before.
        bases: where each paragraph begins in the joined ones, int64 ``[paragraphs]``; a character is between two.
    """

    places: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    in_paragraph: Bools
    in_word: Bools
    bases: np.ndarray

    @classmethod
    def of(cls, paragraphs: Sequence[str], encodings: Sequence[Encoding]) -> _Tokens:
        bases = np.cumsum([0, *(len(text) + 1 for text in paragraphs[:-1])])
        offsets, words = map(np.concatenate, zip(*(each.alignment for each in encodings), strict=True))
        paragraph = np.repeat(np.arange(len(encodings)), [len(each) for each in encodings])
        places = np.flatnonzero(words >= 0)
        offsets, words, paragraph = offsets[places], words[places], paragraph[places]
        in_paragraph = _as_before(paragraph)
        begins, ends = (offsets + bases[paragraph][:, None]).T
        return cls(places, begins, ends, in_paragraph, in_paragraph & _as_before(words), bases)


def _flags(paragraphs: Sequence[str], tokens: _Tokens, spans: Sequence[Spans]) -> Flags:
    in_sentence = _in_sentence(tokens, _joined([sentences(text) for text in paragraphs], tokens.bases))
    words = _joined([each.words for each in spans], tokens.bases)
    in_word = in_sentence & (tokens.in_word | continued(tokens.begins, tokens.ends, words))
    borders = np.append(np.flatnonzero(~in_word), len(in_word))
    units = Spans(
        np.stack([borders[:-1], borders[1:]], axis=1).astype(np.int32),
        _tokens_of(_joined([each.phrases for each in spans], tokens.bases), tokens),
        _tokens_of(_joined([each.entities for each in spans], tokens.bases), tokens),
    ).unified()
    phrase, entity = (_covered(each, len(in_word)) for each in (units.phrases, units.entities))
    found: Flags = (
        in_word * IN_WORD
        + (phrase.inside & in_sentence) * IN_PHRASE
        + (entity.inside & in_sentence) * IN_ENTITY
        + (~in_word & _capital(paragraphs, tokens.begins)) * CAPITAL
        + in_sentence * IN_SENTENCE
        + tokens.in_paragraph * IN_PARAGRAPH
        + entity.all * ENTITY
        + phrase.all * PHRASE
    ).astype(np.uint8)
    return found


def _in_sentence(tokens: _Tokens, found: Units) -> Bools:
    """Return whether each token goes on with the sentence of the token before."""
    number = np.searchsorted(found[:, 0], tokens.begins, side="right")
    first = np.maximum.accumulate(np.where(tokens.in_word, 0, np.arange(len(number))))
    return tokens.in_paragraph & _as_before(number[first])


def _tokens_of(units: Units, tokens: _Tokens) -> Units:
    """Convert units of characters into units of tokens; those that no token has a part of are left out."""
    if not len(units):
        return NONE
    begins = np.searchsorted(tokens.ends, units[:, 0], side="right")
    ends = np.searchsorted(tokens.begins, units[:, 1], side="left")
    return np.stack([begins, ends], axis=1)[begins < ends].astype(np.int32)


@attrs.frozen(eq=False)
class _Covered:
    """The tokens in some units: ``all`` of them, and those ``inside``, which are not the first one of their unit."""

    all: Bools
    inside: Bools


def _covered(units: Units, size: int) -> _Covered:
    steps = np.zeros(size + 1, np.int32)
    np.add.at(steps, units[:, 0], 1)
    np.add.at(steps, units[:, 1], -1)
    every = np.cumsum(steps[:-1]) > 0
    inside = every.copy()
    inside[units[:, 0]] = False
    return _Covered(every, inside)


def _capital(paragraphs: Sequence[str], begins: np.ndarray) -> Bools:
    """Return whether the characters at some places of the joined paragraphs are capital letters."""
    characters = np.frombuffer("\n".join(paragraphs).encode("utf-32-le"), "<U1")
    return np.char.istitle(characters[begins])  # of a single character: upper or title case


def _joined(units: Sequence[Units], bases: np.ndarray) -> Units:
    """Lay the units of all paragraphs side by side."""
    counts = [len(each) for each in units]
    joined: Units = np.concatenate(units) + np.repeat(bases, counts)[:, None].astype(np.int32)
    return joined


def _as_before(values: np.ndarray) -> Bools:
    """Return whether each value is that before it; the first one is not."""
    same = np.zeros(len(values), bool)
    same[1:] = values[1:] == values[:-1]
    return same
