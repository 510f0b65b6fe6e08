"""How a message shows what people have given: in quotes, escaped where it cannot be seen, cut where it is long."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

LONGEST, MOST = 40, 10
"""Characters of a value, and values, that a message shows."""


def shown(value: object) -> str:
    r"""Return a value for a message: a text in quotes, anything else as Python writes it; the beginning of a long one.

    >>> shown("\ufeffname\x1b[2J")
    "'\\ufeffname\\x1b[2J'"
    """
    if isinstance(value, str):
        return repr(_beginning(value))
    try:
        return printable(_beginning(repr(value)))
    except (RecursionError, ValueError):  # lists a thousand deep, a number of thousands of digits
        return f"a {type(value).__name__} that is too large to be shown"


def listed(values: Iterable[object]) -> str:
    """Return some values for a message, the first ten of them; ``nothing`` where there are none."""
    first = [shown(value) for value in islice(values, MOST + 1)]
    return ", ".join([*first[:MOST], *["..."] * (len(first) > MOST)]) or "nothing"


def first_line(error: BaseException) -> str:
    r"""Return the first line of an error's message, without a full stop; of one without a message, its class.

    >>> first_line(ValueError("No space left.\nTry again."))
    'No space left'
    """
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def printable(text: str) -> str:
    """Return a text whose invisible characters are escaped, as a terminal may be told; line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else _escaped(each) for each in text)


def _beginning(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _escaped(character: str) -> str:
    return repr(character)[1:-1]
