"""Texts of similar length, so that the length of a wrong answer does not tell that it is wrong."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.tasks.pretraining.sampling.draws import Draws

Numbers = NDArray[np.int64]

TOLERANCE = 8
"""Lengths are similar that differ by no more than one part in so many, or by one token."""

REDRAWN = 64
"""How often a text of another group is drawn before the next best one is taken."""


def limits(lengths: NDArray[np.integer]) -> tuple[Numbers, Numbers]:
    """Return the least and the greatest length that are similar to each length."""
    sizes = lengths.astype(np.int64)
    apart = np.maximum(sizes // TOLERANCE, 1)
    return sizes - apart, sizes + apart


@attrs.frozen(eq=False)
class LengthMatching:
    """Finds texts of similar length, in the same group (a document, an article) or in another one.

    Attributes:
        lengths: of the texts, ``[texts]``.
        groups: the number of each text's group, ascending, ``[texts]``.
        by_length: the texts by length, ``[texts]``.
        in_groups: the texts group by group, in each by length, ``[texts]``.
        steps: where each length begins in ``by_length``, ``[twice the greatest length + 3]``.
    """

    lengths: NDArray[np.integer]
    groups: NDArray[np.integer]
    by_length: NDArray[np.integer]
    in_groups: NDArray[np.integer]
    steps: NDArray[np.integer]

    @classmethod
    def of(cls, lengths: NDArray[np.integer], groups: NDArray[np.integer]) -> LengthMatching:
        """Sort the texts by length."""
        greatest = 2 * int(lengths.max(initial=0)) + 2  # more than any length that is asked for
        steps = np.append(0, np.cumsum(np.bincount(lengths, minlength=greatest)))
        return cls(lengths, groups, np.argsort(lengths, kind="stable"), np.lexsort((lengths, groups)), steps)

    def counts(self) -> tuple[Numbers, Numbers]:
        """Return for each text how many similar ones there are in its group, itself included, and in all others."""
        low, high = limits(self.lengths)
        keys = self.groups * np.int64(len(self.steps))
        ordered = (keys + self.lengths)[self.in_groups]
        own = np.searchsorted(ordered, keys + high, "right") - np.searchsorted(ordered, keys + low)
        return own, self.steps[high + 1] - self.steps[low] - own

    def in_group(self, text: int) -> Numbers:
        """Return the texts of the same group that are similar to a text, itself included."""
        low, high = (int(each) for each in limits(self.lengths[text]))
        group = self.groups[text]
        texts = range(*(int(np.searchsorted(self.groups, group, side)) for side in ("left", "right")))

        def length(place: int) -> int:
            return int(self.lengths[self.in_groups[place]])

        first, end = bisect_left(texts, low, key=length), bisect_right(texts, high, key=length)
        return self.in_groups[texts.start + first : texts.start + end].astype(np.int64)

    def in_another(self, text: int, draws: Draws, but_first: bool = False) -> int:
        """Draw a text of another group that is similar to a text; there must be one.

        Args:
            text: a text.
            draws: random numbers.
            but_first: whether the first text of a group is taken only if ``REDRAWN`` draws found nothing else.
        """
        low, high = limits(self.lengths[text])
        first = int(self.steps[low])
        many = int(self.steps[high + 1]) - first
        for attempt in range(REDRAWN):
            place = draws.below(many, f"another {attempt}")
            other = int(self.by_length[first + place])
            if self.groups[other] != self.groups[text] and not (but_first and self.begins_group(other)):
                return other
        # Of texts of equal length those of a group stand in a row: drawing again is fair, and this may always end with
        # the one behind them.
        while self.groups[self.by_length[first + place]] == self.groups[text]:
            place = (place + 1) % many
        return int(self.by_length[first + place])

    def begins_group(self, text: int) -> bool:
        """Return whether a text is the first of its group."""
        return text == 0 or bool(self.groups[text - 1] != self.groups[text])
