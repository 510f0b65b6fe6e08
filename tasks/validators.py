"""What values a setting may have; the messages are for whoever wrote it, on the command line or in a file."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from onion.validation import Check, is_number, is_whole

QUOTE = "what YAML or JSON takes for something else, such as yes, true or 1.0, is a text in quotes"


def one_of(values: Collection[str]) -> Check:
    """Return a validator for a text that is one of some."""
    return Check(f"one of {', '.join(values)}", lambda value: isinstance(value, str) and value in values)


def as_float(value: Any) -> Any:
    """YAML takes 5e-5 for a text; so do JSON files that quote their numbers. What is no number stays as it is."""
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):  # the last: a whole number of hundreds of digits
        return value


def as_name(value: Any) -> Any:
    """Labels are often 0 and 1, and no text to YAML or JSON; what is no whole number stays as it is."""
    return str(value) if is_whole(value) else value


def as_texts(value: Any) -> Any:
    """A list in a file, or one text; what is neither stays as it is."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else value


TEXT = Check("a text", lambda value: isinstance(value, str) and value != "")
TEXTS = Check(
    "a list of texts", lambda value: isinstance(value, tuple) and all(isinstance(each, str) and each for each in value)
)
NAME = Check("a text or a whole number", lambda value: isinstance(value, str) and value != "", f"; {QUOTE}")
SWITCH = Check("true or false", lambda value: isinstance(value, bool))
NATURAL = Check("a whole number from 1", lambda value: is_whole(value) and value >= 1, reads=int)
SEED = Check("a whole number from 0 to 4294967295", lambda value: is_whole(value) and 0 <= value < 2**32, reads=int)
NUMBER = Check("a number", is_number, reads=float)
POSITIVE = Check("a number above 0", lambda value: is_number(value) and value > 0, reads=float)
NOT_NEGATIVE = Check("a number from 0", lambda value: is_number(value) and value >= 0, reads=float)
PART = Check("a number from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1, reads=float)
BELOW_ONE = Check("a number from 0 and below 1", lambda value: is_number(value) and 0 <= value < 1, reads=float)
SHARE = Check("a number above 0 and up to 1", lambda value: is_number(value) and 0 < value <= 1, reads=float)
