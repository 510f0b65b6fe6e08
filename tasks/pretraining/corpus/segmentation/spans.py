"""Units of a text as ranges of characters, and what is done with them so that no unit cuts another."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import numpy as np
from numpy.typing import NDArray

Units = NDArray[np.int32]
"""``[units, 2]``: begin and end, exclusive, of each; ascending, without overlaps."""

NONE: Units = np.zeros((0, 2), np.int32)


def units_of(pairs: Iterable[tuple[int, int]]) -> Units:
    """Return pairs of begin and end, in their order, as units."""
    return np.array([*pairs], np.int32).reshape(-1, 2)


@attrs.frozen(eq=False)
class Spans:
    """The units of one text, in characters (code points).

    Attributes:
        words: of the language; characters outside of all words are words of their own.
        phrases: word groups.
        entities: named entities.
    """

    words: Units = NONE
    phrases: Units = NONE
    entities: Units = NONE

    def unified(self) -> Spans:
        """Return units of which none cuts another: two of them are apart, or one holds the other.

        Words that overlap become one. Entities and phrases grow to the borders of the words that they cut, and phrases
        to those of entities; those that then overlap become one.
        """
        words = merged(self.words)
        entities = merged(grown(self.entities, words))
        return Spans(words, merged(grown(grown(self.phrases, words), entities)), entities)


def merged(units: NDArray[np.integer]) -> Units:
    """Return ranges in any order as units: those that overlap become one, neighbours stay apart."""
    if not len(units):
        return NONE
    units = units[np.argsort(units[:, 0], kind="stable")]
    ends = np.maximum.accumulate(units[:, 1])
    begins = np.flatnonzero(np.concatenate([[True], units[1:, 0] >= ends[:-1]]))
    return np.stack([units[begins, 0], ends[np.append(begins[1:], len(units)) - 1]], axis=1).astype(np.int32)


def grown(units: NDArray[np.integer], whole: Units) -> NDArray[np.integer]:
    """Return ranges, each extended to the borders of the units that it has a part of.

    Args:
        units: not empty each; they may overlap.
        whole: the units that must not be cut.
    """
    if not len(units) or not len(whole):
        return units
    first = np.searchsorted(whole[:, 1], units[:, 0], side="right")  # the unit that holds the begin, or follows it
    last = np.searchsorted(whole[:, 0], units[:, 1], side="left") - 1  # the one that holds the last character
    begins = np.minimum(units[:, 0], whole[np.minimum(first, len(whole) - 1), 0])
    ends = np.maximum(units[:, 1], whole[np.maximum(last, 0), 1])
    return np.stack([np.where(first < len(whole), begins, units[:, 0]), np.where(last >= 0, ends, units[:, 1])], axis=1)
