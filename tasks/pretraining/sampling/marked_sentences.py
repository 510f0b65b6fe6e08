"""Sentences that begin with one of some texts, found by their tokens."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus.corpus import Corpus, Shard
from onion.tasks.pretraining.corpus.flags import IN_SENTENCE, IN_WORD, starts

Numbers = NDArray[np.int64]

COMMAS = (",", "，", "、")
"""What belongs to a marker if it follows."""


@attrs.frozen(eq=False)
class MarkedSentences:
    """The sentences of a corpus that begin with a marker, and go on behind it.

    Attributes:
        places: of their first tokens over all shards, ascending, int64 ``[found]``.
        markers: the number of each one's marker, int64 ``[found]``.
        sizes: tokens of the marker, with a comma behind it, int64 ``[found]``.
    """

    places: Numbers
    markers: Numbers
    sizes: Numbers

    @classmethod
    def of(cls, corpus: Corpus, markers: Sequence[str]) -> MarkedSentences:
        """Find them: the longest marker of each sentence, which must end where a word ends."""
        spelled = spellings(corpus.tokenizer, markers)
        commas = [ids[0] for ids, _ in spellings(corpus.tokenizer, COMMAS) if len(ids) == 1]
        found, first = [np.zeros((3, 0), np.int64)], 0
        for shard in corpus.shards:
            begins, marker, size = _of_shard(shard, spelled, commas)
            found.append(np.stack([begins + first, marker, size]))
            first += len(shard.tokens)
        return cls(*np.concatenate(found, axis=1))


def spellings(tokenizer: Tokenizer, texts: Sequence[str]) -> list[tuple[list[int], int]]:
    """Return the ids of each text, with its number, the longest first.

    A tokenizer that spells a text otherwise behind white space gives it two spellings. A text with a character that the
    vocabulary does not have gets none.
    """
    found: dict[tuple[int, ...], int] = {}
    for number, text in enumerate(texts):
        for each in tokenizer([text, f" {text}"]):
            ids = tuple(each.ids[1:-1].tolist())
            if ids and tokenizer.unk_id not in ids:
                found.setdefault(ids, number)
    return sorted(((list(ids), number) for ids, number in found.items()), key=lambda each: -len(each[0]))


def _of_shard(
    shard: Shard, spelled: Sequence[tuple[list[int], int]], commas: Sequence[int]
) -> tuple[Numbers, Numbers, Numbers]:
    begins = starts(shard.flags, IN_SENTENCE)
    ends = np.append(begins[1:], len(shard.tokens))
    marker, size = np.full(len(begins), -1, np.int64), np.zeros(len(begins), np.int64)
    for ids, number in spelled:
        open_ = np.flatnonzero((marker < 0) & (ends - begins > len(ids)))
        for place, token in enumerate(ids):
            open_ = open_[shard.tokens[begins[open_] + place] == token]
        whole = open_[(shard.flags[begins[open_] + len(ids)] & IN_WORD) == 0]
        marker[whole], size[whole] = number, len(ids)
    found = marker >= 0
    begins, ends, marker, size = begins[found], ends[found], marker[found], size[found]
    size += np.isin(shard.tokens[begins + size], commas)
    goes_on = begins + size < ends
    return begins[goes_on], marker[goes_on], size[goes_on]
