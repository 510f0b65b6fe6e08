"""`Examples`: features as columns; an example is assembled when it is requested."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

import attrs
import numpy as np

from onion.errors import DataError

Example = dict[str, Any]
"""Field -> a number, or an array whose first axis may differ in length between examples. Every example has ``ids``,
token ids ``[length]``, and ``row``, the number of the row it was made from."""

WHOLE = np.dtype(np.int32)
"""The type of integers: half the size of int64."""


@attrs.frozen(eq=False)
class Column:
    """One field of all examples.

    Attributes:
        values: one number per example, or the concatenated arrays of all examples.
        starts: int64 ``[examples + 1]``, where each example's array starts; None if the field is a number.
    """

    values: np.ndarray
    starts: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.values) if self.starts is None else len(self.starts) - 1

    def __getitem__(self, place: int) -> Any:
        if self.starts is None:
            return self.values[place].item()
        return self.values[self.starts[place] : self.starts[place + 1]]

    @classmethod
    def of(cls, name: str, fields: Sequence[Any]) -> Column:
        """Make a column; integers become int32, other numbers float32.

        Args:
            name: of the field, for messages.
            fields: one per example; all numbers, or all arrays that differ in their first axis only.

        Raises:
            DataError: they are something else, or do not fit into 32 bits.
        """
        if not isinstance(fields[0], np.ndarray):
            return cls(_packed(name, fields, list(fields)))
        starts = np.zeros(len(fields) + 1, np.int64)
        np.cumsum([len(field) for field in fields], out=starts[1:])
        return cls(_packed(name, fields, fields, np.concatenate), starts)

    def like(self, other: Column) -> bool:
        """Tell whether two columns can belong to one field: same type, and same shape except for the lengths."""
        return self._form() == other._form()

    def _form(self) -> tuple[Any, ...]:
        return self.values.dtype, self.values.shape[1:], self.starts is None


def columns_of(examples: Sequence[Example]) -> dict[str, Column]:
    """Convert examples, at least one, into columns.

    Raises:
        DataError: they have different fields, or a field has different types.
    """
    for example in examples:
        if example.keys() != examples[0].keys():
            one, other = (", ".join(each) for each in (examples[0], example))
            raise DataError(f"all examples must have the same fields; one has {one}, another {other}")
    return {name: Column.of(name, [example[name] for example in examples]) for name in examples[0]}


class Examples(Sequence[Example]):
    """A sequence of examples over columns.

    Each example has an additional field ``place``: its index.

    Args:
        columns: field -> column; all of the same length, at least 1.
        notes: warnings about the examples -> how often each applies.
    """

    def __init__(self, columns: Mapping[str, Column], notes: Mapping[str, int] | None = None) -> None:
        self.columns = dict(columns)
        self._size = len(next(iter(self.columns.values())))
        self.notes = dict(notes or {})
        self.fingerprint: str | None = None
        """Identifies the examples of a file (see ``onion.data.source.fingerprint``)."""

    @classmethod
    def of(cls, examples: Sequence[Example], notes: Mapping[str, int] | None = None) -> Examples:
        """Convert examples, at least one."""
        return cls(columns_of(examples), notes)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> list[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | list[Example]:
        if isinstance(index, slice):
            return [self[place] for place in range(self._size)[index]]
        place = range(self._size)[index]  # supports negative indices and raises IndexError
        example = {"place": place}
        for name, column in self.columns.items():
            example[name] = column[place]
        return example

    def __iter__(self) -> Iterator[Example]:
        return map(self.__getitem__, range(len(self)))

    @property
    def lengths(self) -> np.ndarray:
        """The number of tokens of each example, int64 ``[examples]``."""
        starts = self.columns["ids"].starts
        assert starts is not None
        return np.diff(starts)


def _packed(name: str, fields: Sequence[Any], given: Any, join: Callable[[Any], np.ndarray] = np.asarray) -> np.ndarray:
    """Return all values of a field in one array of 32 bits."""
    try:
        values = join(given)
    except ValueError as error:
        raise DataError(f"the field {name!r} of the examples has inconsistent shapes ({error})") from None
    if values.dtype.kind == "f":
        return values.astype(np.float32, copy=False)
    if values.dtype.kind not in "iub":
        odd = type(fields[0]).__name__
        raise DataError(f"the field {name!r} of the examples is {odd} of {values.dtype}; it must contain numbers")
    limits = np.iinfo(WHOLE)
    if values.size and not limits.min <= values.min() <= values.max() <= limits.max:
        raise DataError(f"the field {name!r} of the examples has a number that does not fit into 32 bits")
    return values.astype(WHOLE, copy=False)
