"""attrs validators for config values; they raise :class:`WeightsError`."""

from __future__ import annotations

from onion.errors import WeightsError
from onion.validation import Check, checked, is_number, is_whole


def whole(least: int) -> Check:
    """Require a whole number >= ``least``."""
    return checked(
        f"a whole number of {least} or more", lambda value: is_whole(value) and value >= least, error=WeightsError
    )


def number(least: float, below: float) -> Check:
    """Require a number in [least, below)."""
    wanted = f"a number from {least} to below {below}"
    return checked(wanted, lambda value: is_number(value) and least <= value < below, error=WeightsError)


def above(least: float, below: float) -> Check:
    """Require a number in (least, below)."""
    wanted = f"a number between {least} and {below}"
    return checked(wanted, lambda value: is_number(value) and least < value < below, error=WeightsError)


def one_of(*options: str) -> Check:
    """Require one of several names."""
    wanted = f"one of {', '.join(options)}"
    return checked(wanted, lambda value: isinstance(value, str) and value in options, error=WeightsError)


truth = checked("true or false", lambda value: isinstance(value, bool), error=WeightsError)
