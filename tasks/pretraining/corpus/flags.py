"""What a corpus knows about each token beside its id: eight bits, ``uint8``.

Units are stored as their insides: a bit such as IN_WORD says that a token goes on with the unit of the token
before. The first token of a unit has it not, so neighbouring units stay apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.uint8]

IN_WORD = 1
"""The token goes on with the word of the token before: the second character of a Chinese word, a ``##`` piece."""

IN_PHRASE = 2
"""It goes on with the phrase of the token before."""

IN_ENTITY = 4
"""It goes on with the named entity of the token before."""

CAPITAL = 8
"""It begins a word whose first character is upper case in the raw text."""

IN_SENTENCE = 16
"""It goes on with the sentence of the token before."""

IN_PARAGRAPH = 32
"""It goes on with the paragraph of the token before."""

ENTITY = 64
"""It is part of a named entity, of one token or more."""

PHRASE = 128
"""It is part of a phrase, of one token or more."""


def begins(flags: Flags, inside: int) -> NDArray[np.bool_]:
    """Return where units begin, bool ``[tokens]``; the first token always begins one.

    Args:
        flags: of consecutive tokens, ``[tokens]``.
        inside: the bit that tells of the inside of these units, such as IN_SENTENCE.
    """
    found: NDArray[np.bool_] = (flags & inside) == 0
    found[:1] = True
    return found


def starts(flags: Flags, inside: int) -> NDArray[np.int64]:
    """Return the places where units begin, int64 ``[units]``; see :func:`begins`."""
    return np.flatnonzero(begins(flags, inside))
