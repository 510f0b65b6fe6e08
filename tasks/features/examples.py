"""`Examples`: features as columns; an example is put together when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import attrs
import numpy as np

Example = dict[str, Any]
"""Field -> a number, or an array whose first axis may have another length in every example. Every one has ``ids``,
token ids ``[length]``; and ``row``, the number of the row that it was made of."""

WHOLE = np.dtype(np.int32)
"""What whole numbers are kept as: half of int64."""


@attrs.frozen(eq=False)
class Column:
    """One field of all examples.

    Attributes:
        values: one number an example; or the arrays of all examples one after the other.
        starts: int64 ``[examples + 1]``, where each example's array begins; None: the field is one number.
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
    def of(cls, fields: Sequence[Any]) -> Column:
        """Put the field of some examples together; whole numbers become int32, others float32."""
        if not isinstance(fields[0], np.ndarray):
            return cls(np.asarray(fields, _kind(np.asarray(fields[0]))))
        starts = np.zeros(len(fields) + 1, np.int64)
        np.cumsum([len(field) for field in fields], out=starts[1:])
        return cls(np.concatenate(fields).astype(_kind(fields[0]), copy=False), starts)


class Examples(Sequence[Example]):
    """A sequence of examples over columns.

    Every example that it gives has ``place`` besides its fields: its number in the sequence.

    Args:
        columns: field -> its column; all of the same length, at least 1.
        notes: what the user should know about them -> how often it was so.
    """

    def __init__(self, columns: Mapping[str, Column], notes: Mapping[str, int] | None = None) -> None:
        self.columns = dict(columns)
        self.notes = dict(notes or {})

    @classmethod
    def of(cls, examples: Sequence[Example], notes: Mapping[str, int] | None = None) -> Examples:
        """Take some examples, at least one, into columns."""
        return cls({name: Column.of([example[name] for example in examples]) for name in examples[0]}, notes)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> list[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | list[Example]:
        if isinstance(index, slice):
            return [self[place] for place in range(len(self))[index]]
        place = range(len(self))[index]  # counts from the end where it is negative, and knows the end
        return {"place": place, **{name: column[place] for name, column in self.columns.items()}}

    def __iter__(self) -> Iterator[Example]:
        return map(self.__getitem__, range(len(self)))

    @property
    def lengths(self) -> np.ndarray:
        """How many tokens each example has, int64 ``[examples]``."""
        starts = self.columns["ids"].starts
        assert starts is not None
        return np.diff(starts)


def _kind(array: np.ndarray) -> np.dtype:
    return np.dtype(np.float32) if array.dtype.kind == "f" else WHOLE
