"""Checks of the values of a config, each as an attrs validator that raises :class:`WeightsError`."""

from __future__ import annotations

from onion.errors import WeightsError
from onion.validation import Check, is_number, is_whole


def whole(least: int) -> Check:
    """A whole number of at least so much."""
    return Check(
        f"a whole number of {least} or more", lambda value: is_whole(value) and value >= least, error=WeightsError
    )


def number(least: float, below: float) -> Check:
    """A number in [least, below)."""
    wanted = f"a number from {least} to below {below}"
    return Check(wanted, lambda value: is_number(value) and least <= value < below, error=WeightsError)


def above(least: float, below: float) -> Check:
    """A number in (least, below)."""
    wanted = f"a number between {least} and {below}"
    return Check(wanted, lambda value: is_number(value) and least < value < below, error=WeightsError)


def one_of(*options: str) -> Check:
    """One of some names."""
    wanted = f"one of {', '.join(options)}"
    return Check(wanted, lambda value: isinstance(value, str) and value in options, error=WeightsError)


truth = Check("true or false", lambda value: isinstance(value, bool), error=WeightsError)
