"""What an argument or a setting may be, and the validator that refuses others."""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from numbers import Integral, Real
from typing import Any, TypeGuard

from onion.errors import DataError, OnionError
from onion.messages import shown

Check = Callable[[Any, Any, Any], None]
"""What attrs calls a validator: (instance, field, value)."""


def checked(wanted: str, fits: Callable[[Any], bool], hint: str = "", error: type[OnionError] = DataError) -> Check:
    """Return a validator that says what a setting has to be, and if need be how to write it."""

    def check(settings: Any, field: Any, value: Any) -> None:
        if not fits(value):
            raise error(f"{field.name} must be {wanted}, got {shown(value)}{hint}")

    return check


def is_whole(value: object) -> TypeGuard[int]:
    """Tell whether something is an integer; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_count(value: object) -> TypeGuard[int]:
    """Tell whether something counts: a whole number from 0, numpy's too; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def is_number(value: object) -> TypeGuard[float]:
    """Tell whether something is a finite number; True and False are none."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # an integer that no float holds
        return False


def is_lazy(function: object) -> bool:
    """Tell whether a call would not run a function's body: a coroutine or generator function."""
    return any(kind(function) for kind in (iscoroutinefunction, isgeneratorfunction, isasyncgenfunction))


def wants_arguments(function: Callable[..., object]) -> bool:
    """Tell whether a function cannot be called without arguments."""
    try:
        signature(function).bind()
    except TypeError:
        return True
    return False
