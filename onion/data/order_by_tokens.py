"""Batches by tokens: as many examples as fit into a number of tokens, by an order that needs no plan of the pass.

`Shuffled` sorts the examples by length once, for all passes, those of equal length at random, and cuts the row into
*strata*: neighbours of about equal length, as many as there are *windows*. A window has one example of each stratum,
drawn anew in each pass by a permutation of the stratum (`onion.data.permutation`). So the lengths of one window are
those of any other, but for the differences within a stratum, and all windows are cut into batches at the same strata.
It follows that

- every pass has the same number of batches,
- a batch is found by its number: a pass is entered anywhere at once, and nothing is kept but the sorted row,
- a batch has at most the tokens of the longest examples of its strata, by which it is cut. What that overestimates is,
  summed over a window, less than the longest example.

An example meets the others of its batch's strata with equal chance, but never one of its own stratum. A batch is in
random order, so that its pieces, which several processes share, have about as many tokens.

`InOrder` leaves the examples where they are, but for the windows within which they are sorted.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onion.data.order import MAX_WINDOW, MIN_WINDOWS, TIES, TOKENS, Indices, random_bits
from onion.data.permutation import Words, mixed, permuted, uniform
from onion.errors import DataError

Lengths = NDArray[np.integer]

TRIED = 32
"""How many numbers of windows are tried, beyond the fewest, to find that whose batches are fullest. The constants stay
as they are, since runs are resumed by later versions."""

SAMPLED = 100_000
"""Of how many examples, at least, the mean length is estimated that says how many windows are the fewest."""


def fitting(lengths: Lengths, tokens: int) -> Lengths:
    """Return the lengths in two bytes each, if they are below 65,536, or in eight.

    Raises:
        DataError: an example has no token, or does not fit into a batch; it is named.
    """
    shortest, longest = int(lengths.argmin()), int(lengths.argmax())
    if lengths[shortest] < 1:
        raise DataError(f"example {shortest} (from 0) has a length of {lengths[shortest]} tokens; it must be 1 or more")
    if lengths[longest] > tokens:
        raise DataError(
            f"example {longest} (from 0) has a length of {lengths[longest]} tokens, more than a batch of "
            f"tokens_per_batch={tokens} may have; shorten it, or raise tokens_per_batch"
        )
    return lengths.astype(np.uint16 if lengths[longest] < 2**16 else np.int64)


class Shuffled:
    """Another random order in each pass.

    Args:
        lengths: Of all examples, in tokens; see `fitting`.
        tokens: Most tokens of a batch; no example is longer.
        seed: Any integer from 0.
        weights: One number >= 0 an example: a pass has as many examples as there are, the n-th of which is drawn from
            the n-th of as many equal shares of all weights, the examples being sorted by length (stratified resampling:
            Kitagawa, 1996). The number of times an example is expected is that of draws with replacement, but differs
            less from pass to pass. Default: each example once.
    """

    def __init__(self, lengths: Lengths, tokens: int, seed: int, weights: NDArray[np.float64] | None = None) -> None:
        self.settings = _settings(lengths, tokens)
        self._seed, self._size = seed, len(lengths)
        self._by_length = _longest_first(lengths, seed)
        self._ends = None if weights is None else np.cumsum(weights[self._by_length])
        self._last = self._size - 1 if weights is None else int(np.flatnonzero(weights[self._by_length])[-1])
        self._windows = self._fullest(lengths, tokens)
        self._begins = np.arange(0, self._size, self._windows, dtype=np.uint64)
        self._sizes = np.minimum(np.uint64(self._windows), np.uint64(self._size) - self._begins)
        self._cuts = evenly_cut(self._bounds(lengths, self._windows), tokens)
        # Only the last stratum, that of the shortest, may have too few for all windows. If it is a batch alone, the
        # windows behind those that are complete have one batch less.
        alone = self._cuts[-2] == len(self._begins) - 1
        self._complete = int(self._sizes[-1]) if alone else self._windows

    def __len__(self) -> int:
        """How many batches a pass has: the same in every pass."""
        return self._windows * (len(self._cuts) - 2) + self._complete

    def batches(self, pass_id: int, start: int) -> Iterator[Indices]:
        """The numbers of the examples of each batch, from batch ``start`` on."""
        keys: Words = np.asarray(random_bits(self._seed, pass_id, TOKENS).random_raw(3))
        first, skipped = self._place(start)
        for number in range(first, self._windows):
            yield from self._window(number, keys)[skipped:]
            skipped = 0

    def _place(self, start: int) -> tuple[int, int]:
        """The window of a batch, and how many of its batches come before."""
        most = len(self._cuts) - 1
        if start < self._complete * most:
            return divmod(start, most)
        window, skipped = divmod(start - self._complete * most, max(1, most - 1))
        return self._complete + window, skipped

    def _window(self, number: int, keys: Words) -> list[Indices]:
        """The batches of a window, in random order."""
        strata = np.arange(len(self._begins) - int(number >= self._sizes[-1]), dtype=np.uint64)
        sizes = self._sizes[: len(strata)]
        places = self._begins[: len(strata)] + permuted(np.full_like(strata, number), sizes, mixed(keys[0] + strata))
        words = mixed(keys[2] + places)
        examples = self._by_length[self._drawn(places, uniform(words))].astype(np.int64)
        ranks = mixed(words)  # no two are equal, so whatever sorts them, the order is the same
        cuts = [begin for begin in self._cuts if begin < len(strata)] + [len(strata)]
        there = np.arange(len(cuts) - 1, dtype=np.uint64)
        key = mixed(keys[1:2] + np.uint64(number))
        order = permuted(there, np.full_like(there, len(there)), np.repeat(key, len(there)))
        rows = [slice(cuts[batch], cuts[batch + 1]) for batch in order.tolist()]
        return [examples[row][np.argsort(ranks[row])] for row in rows]

    def _drawn(self, places: Words, within: NDArray[np.float64] | float) -> NDArray[Any]:
        """Which of the sorted examples are at these places; by weight, ``within`` is where in the share of a place."""
        if self._ends is None:
            return places
        shares = (places + within) / self._size
        found = np.searchsorted(self._ends, shares * self._ends[-1], side="right")
        drawn: NDArray[Any] = np.minimum(found, self._last)  # a product may be rounded up
        return drawn

    def _bounds(self, lengths: Lengths, windows: int) -> Lengths:
        """The longest that an example of each stratum may be."""
        firsts = np.arange(0, self._size, windows, dtype=np.uint64)
        bounds: Lengths = lengths[self._by_length[self._drawn(firsts, 0.0)]]
        return bounds

    def _fullest(self, lengths: Lengths, tokens: int) -> int:
        """The number of windows that gives the fewest batches, of those near `MAX_WINDOW` batches a window."""
        every = np.arange(0, self._size, max(1, self._size // SAMPLED), dtype=np.uint64)
        found = lengths[self._by_length[self._drawn(every, 0.0)]]
        wanted = max(1, -(-int(found.sum(dtype=np.int64)) * self._size // (len(every) * tokens)))
        fewest = min(self._size, max(min(MIN_WINDOWS, wanted), -(-wanted // MAX_WINDOW)))
        tried = range(fewest, min(self._size, 2 * fewest, fewest + TRIED) + 1)
        return min(tried, key=lambda windows: windows * (len(_cut(self._bounds(lengths, windows), tokens)) - 1))


class InOrder:
    """The same order in each pass: windows as the examples come, within which they are sorted, the longest first.

    Args:
        lengths: Of all examples, in tokens; see `fitting`.
        tokens: Most tokens of a batch; no example is longer.
    """

    def __init__(self, lengths: Lengths, tokens: int) -> None:
        self.settings = _settings(lengths, tokens)
        windows = _cut(lengths, MAX_WINDOW * tokens)
        orders, cuts = [], [0]
        for begin, end in pairwise(windows):
            order = begin + np.argsort(-lengths[begin:end].astype(np.int64), kind="stable")
            orders.append(order)
            cuts += [begin + cut for cut in evenly_cut(lengths[order], tokens)[1:]]
        self._order, self._cuts = np.concatenate(orders), cuts

    def __len__(self) -> int:
        """How many batches a pass has."""
        return len(self._cuts) - 1

    def batches(self, pass_id: int, start: int) -> Iterator[Indices]:
        """The numbers of the examples of each batch, from batch ``start`` on."""
        for begin, end in pairwise(self._cuts[start:]):
            yield self._order[begin:end]


def _settings(lengths: Lengths, tokens: int) -> dict[str, Any]:
    return {"tokens_per_batch": tokens, "lengths": f"crc32 {zlib.crc32(np.ascontiguousarray(lengths).data):08x}"}


def _longest_first(lengths: Lengths, seed: int) -> NDArray[np.unsignedinteger]:
    """The numbers of the examples by length, those of equal length at random.

    As they come, a batch of equal lengths would be of neighbours in the file, such as examples of one label, in every
    pass.
    """
    size = len(lengths)
    ties = random_bits(seed, 0, TIES).random_raw(-(-size // 4)).astype("<u8").view("<u2")[:size]
    if lengths.dtype != np.uint16 or size >= 2**32:
        return np.lexsort((ties, lengths))[::-1].astype(np.uint64)
    # The same by one sort of numbers, which reads and writes in order: 0.1 s for 10^7.
    keys = lengths.astype(np.uint64)
    for low, bits in ((ties, 16), (np.arange(size, dtype=np.uint32), 32)):
        keys <<= np.uint64(bits)
        keys |= low
    keys.sort()
    return keys[::-1].astype(np.uint32)


def evenly_cut(lengths: Lengths, tokens: int) -> list[int]:
    """Cut a row of examples into the fewest batches, and these so that the fullest has as few tokens as possible.

    Returns:
        Where the batches begin, and the end of the row.
    """
    cuts = _cut(lengths, tokens)
    least = max(int(lengths.max()), -(-int(lengths.sum(dtype=np.int64)) // (len(cuts) - 1)))
    while least < tokens:
        middle = (least + tokens) // 2
        found = _cut(lengths, middle)
        if len(found) == len(cuts):
            cuts, tokens = found, middle
        else:
            least = middle + 1
    return cuts


def _cut(lengths: Lengths, tokens: int) -> list[int]:
    """The same, each batch having as many examples as fit."""
    ends = np.cumsum(lengths, dtype=np.int64)
    cuts, before = [0], 0
    while cuts[-1] < len(ends):
        cuts.append(int(np.searchsorted(ends, before + tokens, side="right")))
        before = int(ends[cuts[-1] - 1])
    return cuts
