"""Which tokens are masked together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onion.tasks.pretraining.corpus import flags as bits
from onion.tasks.pretraining.corpus.flags import Flags
from onion.tasks.pretraining.masking.levels import CHARACTER, ENTITY, PHRASE, WORD

INSIDE = np.array([0, bits.IN_WORD, bits.IN_PHRASE, bits.IN_ENTITY], np.uint8)
"""The bit of the inside of a unit, by kind."""


def kinds_of(flags: Flags, level: int) -> NDArray[np.int64]:
    """Return the kind of unit of each token: the largest that it is part of, up to a level; int64 ``[tokens]``.

    Args:
        flags: of consecutive tokens, ``[tokens]``.
        level: CHARACTER: each token is by itself. WORD: each is part of a word. PHRASE, ENTITY: it may be part of a
            phrase, or of an entity.
    """
    kinds = np.full(len(flags), min(level, WORD), np.int64)
    if level >= PHRASE:
        kinds[(flags & bits.PHRASE) != 0] = PHRASE
    if level >= ENTITY:
        kinds[(flags & bits.ENTITY) != 0] = ENTITY
    return kinds


def first_of_units(flags: Flags, kinds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of the first token of each token's unit, int64 ``[tokens]``.

    Words and entities are never cut. Of a phrase with an entity inside, what is before the entity is a unit, and what
    is behind it.

    Args:
        flags: of consecutive tokens, ``[tokens]``.
        kinds: of the tokens, as :func:`kinds_of` returns them.
    """
    inside = (flags & INSIDE[kinds]) != 0
    inside[1:] &= kinds[1:] == kinds[:-1]
    inside |= (kinds != CHARACTER) & ((flags & bits.IN_WORD) != 0)
    inside[:1] = False
    return np.maximum.accumulate(np.where(inside, 0, np.arange(len(flags))))
