"""Where a shard is cut into segments of limited length: between sentences, or else between words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onion.tasks.pretraining.corpus.corpus import Shard
from onion.tasks.pretraining.corpus.flags import IN_WORD, Flags, begins

Places = NDArray[np.int64]


def cuts(shard: Shard, max_tokens: int, inside: int, within: int | None = None, one_by_one: bool = False) -> Places:
    """Return where the segments of a shard begin, and at last its end, int64 ``[segments + 1]``.

    Every token is in one segment, and a segment is in one document. As many whole units as fit are put together, from
    the first one on. A longer unit is cut, like a text by ``textwrap``, before the last word that does not fit; only a
    word that is longer still is cut itself.

    Args:
        shard: its tokens are not read.
        max_tokens: most tokens of a segment.
        inside: the bit of the inside of a unit, such as IN_SENTENCE.
        within: the bit of the inside of what a segment does not leave, such as IN_PARAGRAPH. Default: documents only.
        one_by_one: whether each unit is a segment of its own. Default False.
    """
    units = _borders(shard, inside)
    units = _shortened(units, shard.flags, max_tokens)
    if one_by_one or len(units) == 1:
        return units
    walls = shard.starts if within is None else _borders(shard, within)
    return units[_greedy(_reach(units, walls, max_tokens))]


def _borders(shard: Shard, inside: int) -> Places:
    """Return where units and documents begin, and at last the end."""
    found = np.append(begins(shard.flags, inside), True)
    found[shard.starts] = True
    return np.flatnonzero(found)


def _shortened(units: Places, flags: Flags, max_tokens: int) -> Places:
    """Cut the units that are too long."""
    long = np.flatnonzero(np.diff(units) > max_tokens)
    more = [cut for unit in long.tolist() for cut in _inner(flags, int(units[unit]), int(units[unit + 1]), max_tokens)]
    return np.insert(units, np.searchsorted(units, more), more)


def _inner(flags: Flags, begin: int, end: int, max_tokens: int) -> list[int]:
    """Return the cuts within one unit."""
    found: list[int] = []
    while end - begin > max_tokens:
        words = np.flatnonzero(begins(flags[begin : begin + max_tokens + 1], IN_WORD))
        begin += int(words[-1]) or max_tokens
        found.append(begin)
    return found


def _reach(units: Places, walls: Places, max_tokens: int) -> NDArray[np.int64]:
    """Return for each unit the number of the unit behind the last one that fits into a segment beginning with it."""
    first = units[:-1]
    wall = walls[np.searchsorted(walls, first, "right")]
    limit = np.minimum(first + max_tokens, wall)
    found: NDArray[np.int64] = np.searchsorted(units, limit, "right") - 1
    return found


def _greedy(reach: NDArray[np.int64]) -> list[int]:
    """Return the numbers of the units that begin segments, and at last the number of units."""
    unit, after = 0, reach.tolist()
    found = [0]
    while unit < len(after):
        unit = after[unit]
        found.append(unit)
    return found
