"""Which words of letters occur in several segments of their document."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from onion.tasks.pretraining.corpus.corpus import Shard
from onion.tasks.pretraining.corpus.flags import IN_WORD, starts
from onion.tasks.pretraining.corpus.segments import Segments
from onion.tasks.pretraining.sampling.draws import GOLDEN, mixed_each
from onion.tasks.pretraining.sampling.words import Letters

BLOCK = 1 << 20
"""Tokens of documents that are looked through together; a longer document is one block."""

ODD = np.uint64(GOLDEN)


def repeated_words(segments: Segments, letters: Letters) -> NDArray[np.uint8]:
    """Return bits of all tokens: whether a word of letters begins there that another segment of the document has too.

    All tokens are read once. Words are compared by hashes of 64 bits, so two words of a document are taken for one with
    a probability of 2^-64.

    Args:
        segments: of a corpus.
        letters: of its vocabulary.

    Returns:
        uint8 ``[tokens / 8]``, as ``numpy.packbits`` makes them; :func:`bits_of` reads them.
    """
    found, first = np.zeros(int(segments.begins[-1]), bool), 0
    for shard in segments.corpus.shards:
        for part in _blocks(shard):
            begins = segments.begins[slice(*np.searchsorted(segments.begins, [first + part.start, first + part.stop]))]
            found[first + part.start : first + part.stop] = _of_block(shard, part, begins - first, letters)
        first += len(shard.tokens)
    return np.packbits(found)


def bits_of(packed: NDArray[np.uint8], begin: int, count: int) -> NDArray[np.bool_]:
    """Return some of the bits that ``numpy.packbits`` has packed, bool ``[count]``."""
    low = begin // 8
    bits = np.unpackbits(packed[low : -(-(begin + count) // 8)])
    return bits[begin - 8 * low :][:count].astype(bool)


def _blocks(shard: Shard) -> Iterator[slice]:
    """Yield the tokens of documents in a row, about ``BLOCK`` at a time."""
    begin = 0
    for end in shard.starts[1:].tolist():
        if end - begin >= BLOCK or end == shard.starts[-1]:
            if end > begin:
                yield slice(begin, end)
            begin = end


def _of_block(shard: Shard, part: slice, begins: NDArray[np.int64], letters: Letters) -> NDArray[np.bool_]:
    """Return whether a repeated word begins at each token of a block, bool ``[tokens]``.

    Args:
        shard: has the tokens.
        part: which of them.
        begins: where segments begin, in the shard.
        letters: of the vocabulary.
    """
    ids, flags = np.asarray(shard.tokens[part]), np.array(shard.flags[part])
    flags[begins - part.start] &= ~np.uint8(IN_WORD)  # a word that is longer than a segment is two
    found = np.zeros(len(ids), bool)
    words = letters.words(ids, flags)
    if not len(words):
        return found
    documents = np.searchsorted(shard.starts, part.start + words, "right").astype(np.uint64)
    owners = np.searchsorted(begins, part.start + words, "right")
    keys = mixed_each(_hashes(ids, flags)[words] ^ mixed_each(documents))
    order = np.lexsort((owners, keys))
    keys, owners = keys[order], owners[order]
    firsts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    counts = np.diff(np.append(firsts, len(keys)))
    several = np.logical_or.reduceat(owners != np.repeat(owners[firsts], counts), firsts)
    found[words[order]] = np.repeat(several, counts)
    return found


def _hashes(ids: NDArray[np.integer], flags: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return at the first token of each word a hash of its ids, uint64 ``[tokens]``; 0 elsewhere."""
    begins = starts(flags, IN_WORD)
    places = np.arange(len(ids)) - np.repeat(begins, np.diff(np.append(begins, len(ids))))
    found = np.zeros(len(ids), np.uint64)
    pieces = mixed_each(ids.astype(np.uint64) + (places.astype(np.uint64) + np.uint64(1)) * ODD)
    found[begins] = np.add.reduceat(pieces, begins)
    return found
