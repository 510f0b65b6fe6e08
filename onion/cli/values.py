"""How the texts of flags become values; argparse tells what is wrong with one."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from onion.errors import DataError
from onion.tasks.validators import NATURAL, NOT_NEGATIVE, POSITIVE
from onion.validation import Check


def read(check: Check, text: str) -> Any:
    """Return the value of a flag that a check describes."""
    try:
        return check.read(text)
    except DataError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


natural = partial(read, NATURAL)
positive = partial(read, POSITIVE)
not_negative = partial(read, NOT_NEGATIVE)
