"""The labels of a task: any strings, numbered from 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

import attrs

from onion.errors import DataError
from onion.messages import MOST, listed, shown
from onion.tasks.validators import QUOTE, as_name

if TYPE_CHECKING:
    from onion.tasks.data.rows import Row


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(names)


@attrs.frozen
class Labels:
    """An ordered set of label names; a label's number is its index.

    Attributes:
        names: the labels in their order.
    """

    names: tuple[str, ...] = attrs.field(converter=_in_order)

    @classmethod
    def of(cls, values: Iterable[str]) -> Labels:
        """Collect the labels that occur; integers are sorted by value, anything else alphabetically."""
        names = sorted(set(values))
        return cls(sorted(names, key=int) if all(map(_is_number, names)) else names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def numbers(self) -> dict[str, int]:
        """Return {name: number}."""
        return {name: number for number, name in enumerate(self.names)}

    def number(self, row: Row, name: str) -> int:
        """Return the number of a row's label.

        Raises:
            DataError: the label is unknown; file and line are named.
        """
        try:
            return self.names.index(name)
        except ValueError:
            raise row.error(f"the label {shown(name)} is unknown; the training file has {self.told()}") from None

    def told(self) -> str:
        """Return the first ten labels for a message."""
        return listed(self.names)


def as_labels(names: object) -> Labels:
    """Convert a list of labels, keeping its order; integers become strings.

    Raises:
        DataError: these are not distinct strings.
    """
    if isinstance(names, Labels):
        return names
    if not isinstance(names, (list, tuple)):
        raise DataError(f"labels: {shown(names)} is not a list of strings")
    found: dict[str, None] = {}
    for name in map(as_name, names):
        if not isinstance(name, str):
            raise DataError(f"labels: {shown(name)} is not a string or an integer; {QUOTE}")
        if name in found:
            raise DataError(f"labels: {shown(name)} is given twice; remove one")
        found[name] = None
    return Labels(found)


def apart(there: object, here: object) -> str:
    """Describe how two values differ; for long lists, by their lengths and the first difference."""
    if not (isinstance(there, list) and isinstance(here, list) and max(len(there), len(here)) > MOST):
        return f"{_whole(there)} there, {_whole(here)} here"
    place = next(i for i, (one, other) in enumerate(zip_longest(there, here)) if one != other)
    at_place = (shown(each[place]) if place < len(each) else "missing" for each in (there, here))
    return f"{len(there)} there, {len(here)} here, and number {place + 1} is {' there, '.join(at_place)} here"


def _whole(value: object) -> str:
    return f"[{', '.join(map(shown, value))}]" if isinstance(value, list) else repr(value)


def _is_number(name: str) -> bool:
    # "1" and "01" are two labels but one number, so only the plain form is sorted by value. Python converts no numbers
    # of thousands of digits.
    return len(name) < 20 and name.removeprefix("-").isdecimal() and str(int(name)) == name
