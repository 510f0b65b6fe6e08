"""Checks of arguments and settings."""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from numbers import Integral, Real
from typing import Any, TypeGuard

from onion.errors import DataError, OnionError
from onion.messages import shown

Check = Callable[[Any, Any, Any], None]
"""A validator of attrs: (instance, field, value)."""


def checked(wanted: str, fits: Callable[[Any], bool], hint: str = "", error: type[OnionError] = DataError) -> Check:
    """Return a validator whose error states what a setting must be, with a hint if given."""

    def check(settings: Any, field: Any, value: Any) -> None:
        if not fits(value):
            raise error(f"{field.name} must be {wanted}, got {shown(value)}{hint}")

    return check


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer and not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_count(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer >= 0, of numpy too, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number and not a bool."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer beyond the range of floats
        return False


def is_lazy(function: object) -> bool:
    """Return whether a function is a coroutine or generator function, whose call would not run its body."""
    return any(kind(function) for kind in (iscoroutinefunction, isgeneratorfunction, isasyncgenfunction))


def wants_arguments(function: Callable[..., object]) -> bool:
    """Return whether a function cannot be called without arguments."""
    try:
        signature(function).bind()
    except TypeError:
        return True
    return False
