"""Validators of settings; their messages are for users of the command line and of config files."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from onion.validation import Check, checked, is_number, is_whole

QUOTE = "put values that YAML or JSON reads as something else, such as yes, true or 1.0, in quotes"


def one_of(values: Collection[str]) -> Check:
    """Return a validator for one of several strings."""
    return checked(f"one of {', '.join(values)}", lambda value: isinstance(value, str) and value in values)


def as_float(value: Any) -> Any:
    """Convert to float, since YAML reads 5e-5 as a string, and some JSON files quote numbers; else return the value."""
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):  # the last: an integer of hundreds of digits
        return value


def as_name(value: Any) -> Any:
    """Convert integers to strings, since labels are often 0 and 1; return other values as they are."""
    return str(value) if is_whole(value) else value


TEXT = checked("a non-empty string", lambda value: isinstance(value, str) and value != "")
NAME = checked("a string or an integer", lambda value: isinstance(value, str) and value != "", f"; {QUOTE}")
SWITCH = checked("true or false", lambda value: isinstance(value, bool))
NATURAL = checked("an integer >= 1", lambda value: is_whole(value) and value >= 1)
SEED = checked("an integer from 0 to 4294967295", lambda value: is_whole(value) and 0 <= value < 2**32)
NUMBER = checked("a number", is_number)
POSITIVE = checked("a number > 0", lambda value: is_number(value) and value > 0)
NOT_NEGATIVE = checked("a number >= 0", lambda value: is_number(value) and value >= 0)
PART = checked("a number from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1)
BELOW_ONE = checked("a number >= 0 and < 1", lambda value: is_number(value) and 0 <= value < 1)
SHARE = checked("a number > 0 and <= 1", lambda value: is_number(value) and 0 < value <= 1)
