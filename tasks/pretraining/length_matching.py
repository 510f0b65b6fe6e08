"""Texts of similar length, so that the length of a wrong answer does not tell that it is wrong."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.tasks.pretraining.draws import Draws

Numbers = NDArray[np.int64]

TOLERANCE = 8
"""Lengths are similar that differ by no more than one part in so many, or by one token."""


def limits(lengths: NDArray[np.integer]) -> tuple[Numbers, Numbers]:
    """Return the least and the greatest length that are similar to each length."""
    sizes = lengths.astype(np.int64)
    apart = np.maximum(sizes // TOLERANCE, 1)
    return sizes - apart, sizes + apart


@attrs.frozen(eq=False)
class LengthMatching:
    """Finds texts of similar length, in the same group (a document, an article) or in another one.

    Attributes:
        lengths: of the texts, int64 ``[texts]``.
        groups: the number of each text's group, int64 ``[texts]``.
    """

    lengths: Numbers
    groups: Numbers
    _by_length: Numbers
    _in_groups: Numbers
    _keys: Numbers
    _base: int

    @classmethod
    def of(cls, lengths: NDArray[np.integer], groups: NDArray[np.integer]) -> LengthMatching:
        """Sort the texts by length."""
        sizes, owners = lengths.astype(np.int64), groups.astype(np.int64)
        base = 2 * int(sizes.max(initial=0)) + 2  # more than any length that is asked for
        in_groups = np.lexsort((sizes, owners))
        keys = (owners * base + sizes)[in_groups]
        return cls(sizes, owners, np.argsort(sizes, kind="stable"), in_groups, keys, base)

    def counts(self) -> tuple[Numbers, Numbers]:
        """Return for each text how many similar ones there are in its group, itself included, and in all others."""
        low, high = limits(self.lengths)
        keys = self.groups * self._base
        own = np.searchsorted(self._keys, keys + high, "right") - np.searchsorted(self._keys, keys + low)
        ordered = self.lengths[self._by_length]
        every = np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low)
        return own, every - own

    def in_group(self, text: int) -> Numbers:
        """Return the texts of the same group that are similar to a text, itself included."""
        low, high = (int(each) for each in limits(self.lengths[text]))
        key = int(self.groups[text]) * self._base
        first, end = np.searchsorted(self._keys, [key + low, key + high + 1])
        return self._in_groups[first:end]

    def in_another(self, text: int, draws: Draws) -> int:
        """Draw a text of another group that is similar to a text; there must be one."""
        low, high = limits(self.lengths[text])
        first = int(np.searchsorted(self.lengths, low, sorter=self._by_length))
        many = int(np.searchsorted(self.lengths, high, "right", sorter=self._by_length)) - first
        place = draws.below(many, "another")
        while self.groups[self._by_length[first + place]] == self.groups[text]:
            place = (place + 1) % many
        return int(self._by_length[first + place])
