"""Checks of arguments and settings."""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from numbers import Integral, Real
from typing import Any, TypeGuard

import attrs

from onion.errors import DataError, OnionError
from onion.messages import shown


@attrs.frozen
class Check:
    """An attrs validator whose message says what a setting must be.

    Attributes:
        wanted: what it must be, as the message says it: "a whole number from 1".
        fits: tells whether a value is that.
        hint: what the message adds, such as how to write it. Default: nothing.
        error: the class of the error. Default: DataError.
        reads: makes a value of the text of a flag; ValueError: it is none. Default: the text itself.
    """

    wanted: str
    fits: Callable[[Any], bool]
    hint: str = ""
    error: type[OnionError] = DataError
    reads: Callable[[str], Any] = str

    def __call__(self, settings: Any, field: Any, value: Any) -> None:
        """Refuse a value that does not fit."""
        if not self.fits(value):
            raise self.error(f"{field.name} must be {self.wanted}, got {shown(value)}{self.hint}")

    def read(self, text: str) -> Any:
        """Return the value of a flag.

        Raises:
            DataError: the text is no such value.
        """
        try:
            value = self.reads(text)
        except ValueError:
            value = None
        if value is None or not self.fits(value):
            raise DataError(f"must be {self.wanted}, got {shown(text)}")
        return value


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
