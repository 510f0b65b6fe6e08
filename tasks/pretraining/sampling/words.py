"""Words of letters, the tokens of which have labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus.flags import IN_WORD, Flags, starts
from onion.tasks.pretraining.corpus.segments import Segments

Ids = NDArray[np.integer]
Places = NDArray[np.int64]

BEGINNINGS = "##", "▁", "Ġ"
"""What tokenizers write before a piece inside a word, or behind a space."""

BLOCK = 4096
"""Segments that are looked through at a time, so that memory does not grow with the corpus."""


def _letters(token: str | None) -> str:
    """Return a token without the mark at its beginning; nothing if it is not of letters only."""
    bare = token or ""
    for mark in BEGINNINGS:
        bare = bare.removeprefix(mark)
    return bare if bare.isalpha() else ""


@attrs.frozen(eq=False)
class Letters:
    """Which tokens of a vocabulary are letters.

    Attributes:
        only: the token is letters only, bool ``[vocabulary]``.
        cased: and the first one is of a script with capitals, bool ``[vocabulary]``.
    """

    only: NDArray[np.bool_]
    cased: NDArray[np.bool_]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Letters:
        """Look at each token."""
        tokens = [_letters(token) for token in tokenizer.tokens(range(tokenizer.vocab_size))]
        return cls(np.array([*map(bool, tokens)]), np.array([each[:1].lower() != each[:1].upper() for each in tokens]))

    def words(self, ids: Ids, flags: Flags) -> Places:
        """Return where the words begin that are letters only, int64 ``[words]``.

        Args:
            ids: of consecutive tokens, at least one, ``[tokens]``.
            flags: of these, ``[tokens]``.
        """
        begins = starts(flags, IN_WORD)
        return begins[np.logical_and.reduceat(self.only[ids], begins)]

    def cased_words(self, ids: Ids, flags: Flags) -> Places:
        """Return where the words begin that are letters only, and may begin with a capital; see :meth:`words`."""
        places = self.words(ids, flags)
        return places[self.cased[ids[places]]]


def holding(segments: Segments, find: Callable[[Any, Flags], Places]) -> NDArray[np.bool_]:
    """Return which segments have a place that is looked for, bool ``[segments]``.

    Args:
        segments: all their tokens are read.
        find: returns the places in consecutive tokens, from their ids and flags.
    """
    found, first = [np.zeros(0, bool)], 0
    for shard in segments.corpus.shards:
        low, high = np.searchsorted(segments.begins[:-1], [first, first + len(shard.tokens)])
        for block in range(int(low), int(high), BLOCK):
            begins = segments.begins[block : min(block + BLOCK, int(high)) + 1] - first
            part = slice(begins[0], begins[-1])
            edges = np.searchsorted(begins[0] + find(shard.tokens[part], shard.flags[part]), begins)
            found.append(np.diff(edges) > 0)
        first += len(shard.tokens)
    return np.concatenate(found)
