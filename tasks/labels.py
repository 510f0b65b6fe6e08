"""The labels of a task: any strings, numbered from 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import attrs

from onion.errors import DataError

if TYPE_CHECKING:
    from onion.tasks.rows import Row


@attrs.frozen
class Labels:
    """An ordered set of label names; a label's number is its place.

    Attributes:
        names: the labels in their order.
    """

    names: tuple[str, ...] = attrs.field(converter=tuple)

    @classmethod
    def of(cls, values: Iterable[str]) -> Labels:
        """Collect the labels that occur; whole numbers are put in numerical order, anything else in alphabetical."""
        names = set(values)
        return cls(sorted(names, key=int if all(map(_is_number, names)) else None))

    @classmethod
    def from_names(cls, names: Iterable[str]) -> Labels:
        """Take labels in the order they have; a Labels stays what it is.

        Raises:
            DataError: these are no different texts.
        """
        if isinstance(names, Labels):
            return names
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise DataError(f"labels: {names!r} is not a list of texts")
        if len(set(names)) < len(names):
            raise DataError(f"labels: {names!r} has one twice")
        return cls(names)

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
            DataError: it is none of them; file and line are named.
        """
        try:
            return self.names.index(name)
        except ValueError:
            raise row.error(f"the label {name!r} is none of those that are learned: {self.told()}") from None

    def told(self) -> str:
        """Return the labels for a message, the first ten of them."""
        return ", ".join(map(repr, self.names[:10])) + (", ..." if len(self) > 10 else "")


def _is_number(name: str) -> bool:
    # "1" and "01" are two labels, but one number; only the plain form has an order of its own. Python reads no number
    # of thousands of digits.
    return len(name) < 20 and name.removeprefix("-").isdecimal() and str(int(name)) == name
