"""Checks of the values of a config, each as an attrs validator that says :class:`WeightsError`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onion.errors import WeightsError

Check = Callable[[Any, Any, Any], None]


def whole(least: int) -> Check:
    """A whole number of at least so much."""
    return _check(lambda value: type(value) is int and value >= least, f"a whole number of {least} or more")


def number(least: float, below: float) -> Check:
    """A number in [least, below)."""
    return _check(lambda value: _is_number(value) and least <= value < below, f"a number from {least} to below {below}")


def above(least: float, below: float) -> Check:
    """A number in (least, below)."""
    return _check(lambda value: _is_number(value) and least < value < below, f"a number between {least} and {below}")


def truth(config: Any, field: Any, value: Any) -> None:
    """True or False."""
    _check(lambda given: isinstance(given, bool), "true or false")(config, field, value)


def one_of(*options: str) -> Check:
    """One of some names."""
    return _check(lambda value: isinstance(value, str) and value in options, f"one of {', '.join(options)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _check(holds: Callable[[Any], bool], wanted: str) -> Check:
    def check(config: Any, field: Any, value: Any) -> None:
        if not holds(value):
            raise WeightsError(f"{field.name} is {value!r}; only {wanted} is supported")

    return check
