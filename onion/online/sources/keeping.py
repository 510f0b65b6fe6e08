"""How long what was trained on stays: a time, or a size."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias

from onion.errors import CompositionError
from onion.validation import is_whole

Keep: TypeAlias = timedelta | int
"""A time, or bytes."""


def refuse_wrong_keep(whose: str, keep: object) -> None:
    """Insist on a time or a number of bytes, from 0.

    Raises:
        CompositionError: it is neither.
    """
    if isinstance(keep, timedelta) and keep >= timedelta(0):
        return
    if not (is_whole(keep) and keep >= 0):
        raise CompositionError(f"{whose}: keep={keep!r} is neither a timedelta nor a number of bytes, from 0.")
