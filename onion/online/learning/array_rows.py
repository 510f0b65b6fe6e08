"""Rows of any form -> a few arrays and texts that a checkpoint can store, and back, bit-identical.

A row is an array, a JSON value, or a dict or tuple of rows. Thousands of rows become one array per dtype.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onion.errors import CheckpointError, DataError

KINDS, KIND, SHAPES, VALUES, NUMBERS = "kinds", "kind", "shapes", "values", "numbers."
"""Keys of the result: the distinct forms, each row's form, the lengths of all axes, JSON values, arrays by dtype."""


def as_arrays(rows: Sequence[Any]) -> dict[str, Any]:
    """Return rows as a flat dict of arrays and texts.

    Raises:
        CheckpointError: a row contains something other than arrays of numbers and JSON values; the message names it.

    >>> sorted(as_arrays([{"x": np.zeros([2, 3], "float32"), "text": "a"}]))
    ['kind', 'kinds', 'numbers.float32', 'shapes', 'values']
    """
    numbers: dict[str, list[NDArray[Any]]] = defaultdict(list)
    shapes: list[int] = []
    values: list[Any] = []

    def form(value: Any) -> Any:
        """Append the arrays and JSON values of a value to the lists; return the rest, its form."""
        if isinstance(value, np.ndarray | np.generic):
            _require_numbers(value)
            numbers[value.dtype.name].append(np.ravel(value))
            shapes.extend(value.shape)
            return {"array": value.dtype.name, "axes": value.ndim}
        if isinstance(value, dict):
            return {"dict": [[key, form(each)] for key, each in value.items()]}
        if isinstance(value, tuple):
            return {"tuple": [form(each) for each in value]}
        values.append(value)
        return None

    kinds: dict[str, int] = {}
    kind = [kinds.setdefault(json.dumps(form(row)), len(kinds)) for row in rows]
    return {
        KINDS: json.dumps(list(kinds)),
        KIND: np.array(kind, np.int32),
        SHAPES: np.array(shapes, np.int64),
        VALUES: _as_json(values),
        **{f"{NUMBERS}{dtype}": np.concatenate(arrays) for dtype, arrays in numbers.items()},
    }


def from_arrays(saved: Mapping[str, Any]) -> list[Any]:
    """Return the rows that :func:`as_arrays` was given."""
    numbers = {key.removeprefix(NUMBERS): _Line(saved[key]) for key in saved if key.startswith(NUMBERS)}
    shapes, values = _Line(saved[SHAPES]), iter(json.loads(saved[VALUES]))
    kinds = [json.loads(each) for each in json.loads(saved[KINDS])]
    return [_filled(kinds[kind], numbers, shapes, values) for kind in saved[KIND]]


def own(row: Any) -> Any:
    """Return a row with arrays of its own: a view would keep the memory of its whole batch.

    Raises:
        DataError: it contains a tensor.
    """
    if isinstance(row, np.ndarray):
        return row.copy()
    if isinstance(row, dict):
        return {name: own(each) for name, each in row.items()}
    if isinstance(row, tuple):
        return tuple(map(own, row))  # of a named one too: a checkpoint does not store its class
    if hasattr(row, "numpy"):
        raise DataError("samples are kept as numpy arrays, and the batch contains a tensor; convert it further inside.")
    return row


class _Line:
    """Numbers that are taken from the front."""

    def __init__(self, numbers: NDArray[Any]) -> None:
        self._numbers, self._at = numbers, 0

    def take(self, count: int) -> NDArray[Any]:
        begin, self._at = self._at, self._at + count
        return np.array(self._numbers[begin : self._at])  # a copy: a row that is dropped has to free its memory


def _filled(form: Any, numbers: Mapping[str, _Line], shapes: _Line, values: Iterator[Any]) -> Any:
    if form is None:
        return next(values)
    if "array" in form:
        shape = tuple(map(int, shapes.take(form["axes"])))
        return numbers[form["array"]].take(int(np.prod(shape))).reshape(shape)[()]
    if "dict" in form:
        return {key: _filled(each, numbers, shapes, values) for key, each in form["dict"]}
    return tuple(_filled(each, numbers, shapes, values) for each in form["tuple"])


def _require_numbers(array: NDArray[Any] | np.generic) -> None:
    if array.dtype.kind not in "biuf":
        raise CheckpointError(
            f"samples contain an array of {array.dtype}, which cannot be saved; use numbers or a list of texts."
        )


def _as_json(values: list[Any]) -> str:
    try:
        return json.dumps(values)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"samples contain what cannot be saved ({error}); leave it out of the batch.") from None
