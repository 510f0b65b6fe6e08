"""The labels of a task: any strings, numbered from 0."""

from __future__ import annotations

from collections.abc import Iterable

import attrs


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

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def numbers(self) -> dict[str, int]:
        """Return {name: number}."""
        return {name: number for number, name in enumerate(self.names)}


def _is_number(name: str) -> bool:
    # "1" and "01" are two labels, but one number; only the plain form has an order of its own. Python reads no number
    # of thousands of digits.
    return len(name) < 20 and name.removeprefix("-").isdecimal() and str(int(name)) == name
