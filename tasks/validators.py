"""Validators of settings; their messages are for users of the command line and of config files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from onion.validation import Check, is_number, is_whole

QUOTE = "put values that YAML or JSON reads as something else, such as yes, true or 1.0, in quotes"


def one_of(values: Collection[str]) -> Check:
    """Return a validator for one of several strings."""
    return Check(f"one of {', '.join(values)}", lambda value: isinstance(value, str) and value in values)


def some_of(values: Collection[str]) -> Check:
    """Return a validator for some of several strings, each once; a flag has commas between them."""

    def fits(value: Any) -> bool:
        return _are_texts(value) and len({*value}) == len(value) and {*value} <= {*values}

    return Check(f"some of {', '.join(values)}, each once", fits, reads=as_names)


def as_float(value: Any) -> Any:
    """Convert to float, since YAML reads 5e-5 as a string, and some JSON files quote numbers; else return the value."""
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):  # the last: an integer of hundreds of digits
        return value


def as_name(value: Any) -> Any:
    """Convert integers to strings, since labels are often 0 and 1; return other values as they are."""
    return str(value) if is_whole(value) else value


def as_texts(value: Any) -> Any:
    """A list in a file, or one text; what is neither stays as it is."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else value


def as_names(value: Any) -> Any:
    """A list in a file, or a text with commas between the names; what is neither stays as it is."""
    return tuple(map(str.strip, value.split(","))) if isinstance(value, str) else as_texts(value)


def as_text(value: Any) -> Any:
    """A share of a file, such as 0.1, is a number to YAML and JSON; what is no number stays as it is."""
    return str(value) if is_number(value) else value


def read_columns(text: str) -> dict[str, str]:
    """Read ``text_a=sentence,label=Sentiment``; ValueError: it is something else."""
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(ours.strip() and theirs.strip() for ours, _, theirs in pairs):
        raise ValueError(text)
    found = {ours.strip(): theirs.strip() for ours, _, theirs in pairs}
    if len(found) < len(pairs):
        raise ValueError(text)  # a column twice
    return found


def _is_columns(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, str) and each for pair in value.items() for each in pair)


def _are_texts(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, str) and each for each in value)


COLUMNS = Check("columns such as text_a=sentence,label=Sentiment", _is_columns, reads=read_columns)
NAMES = Check("names of columns, such as id,text_a", _are_texts, reads=as_names)
TEXTS = Check("a list of strings", _are_texts)
TEXT = Check("a non-empty string", lambda value: isinstance(value, str) and value != "")
NAME = Check("a string or an integer", lambda value: isinstance(value, str) and value != "", f"; {QUOTE}")
SWITCH = Check("true or false", lambda value: isinstance(value, bool))
COUNT = Check("an integer >= 0", lambda value: is_whole(value) and value >= 0, reads=int)
NATURAL = Check("an integer >= 1", lambda value: is_whole(value) and value >= 1, reads=int)
INTERVAL = Check(
    "an integer >= 1, or pass",
    lambda value: value == "pass" or (is_whole(value) and value >= 1),
    reads=lambda text: text if text == "pass" else int(text),
)
SEED = Check("an integer from 0 to 4294967295", lambda value: is_whole(value) and 0 <= value < 2**32, reads=int)
NUMBER = Check("a number", is_number, reads=float)
POSITIVE = Check("a number > 0", lambda value: is_number(value) and value > 0, reads=float)
NOT_NEGATIVE = Check("a number >= 0", lambda value: is_number(value) and value >= 0, reads=float)
PART = Check("a number from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1, reads=float)
BELOW_ONE = Check("a number >= 0 and < 1", lambda value: is_number(value) and 0 <= value < 1, reads=float)
SHARE = Check("a number > 0 and <= 1", lambda value: is_number(value) and 0 < value <= 1, reads=float)
