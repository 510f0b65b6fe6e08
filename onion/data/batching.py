"""A list of examples -> one batch."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from onion.errors import DataError


def collate(examples: Sequence[Any]) -> Any:
    """Stack examples field by field; the default of `onion.data.Loader`.

    ==================================  ====================================================
    examples                            batch
    ==================================  ====================================================
    dicts                               a dict, each field collated
    tuples (also named ones)            a tuple of the same kind, each field collated
    numbers, arrays, lists of numbers   an array ``[batch, ...]``
    Paddle tensors                      a Paddle tensor ``[batch, ...]``
    anything else (strings, None)       the list of them
    ==================================  ====================================================

    Arrays keep their dtype. Python's integers become int64, and its floats float32 as in ``paddle.to_tensor``, since
    float64 would not mix with the parameters of a network.

    Args:
        examples: At least one example; all of the same structure.

    Raises:
        DataError: The examples differ in their fields or in the shape of an array. The message names the field.
    """
    return _collate(examples, "")


def pad(
    arrays: Sequence[Sequence[int] | NDArray[Any]], value: float = 0, dtype: DTypeLike | None = None
) -> NDArray[Any]:
    """Put sequences of unequal length into one array, filled up at the end.

    Args:
        arrays: One-dimensional arrays or lists of numbers, at least one.
        value: Fills the rest of shorter sequences. Default 0.
        dtype: Of the result; by default that of the first sequence.

    Returns:
        ``[batch, longest]``. Where all are empty, ``[batch, 0]``.

    >>> pad([[5, 6, 7], [8]], value=-1)
    array([[ 5,  6,  7],
           [ 8, -1, -1]])
    """
    longest = max(map(len, arrays))
    padded = np.full((len(arrays), longest), value, dtype or _array(arrays[0]).dtype)
    for row, array in enumerate(arrays):
        padded[row, : len(array)] = array
    return padded


def _collate(examples: Sequence[Any], field: str) -> Any:
    first = examples[0]
    if isinstance(first, Mapping):
        return {name: _collate(column, f"{field}[{name!r}]") for name, column in _columns(examples, field).items()}
    if isinstance(first, tuple):
        columns = [_collate(column, f"{field}[{i}]") for i, column in enumerate(_tuple_columns(examples, field))]
        return type(first)(*columns) if hasattr(first, "_fields") else tuple(columns)
    if isinstance(first, np.ndarray | np.generic | Number | list):
        return _stack(examples, field)
    paddle = sys.modules.get("paddle")  # where Paddle is not imported there is no tensor either
    if paddle is not None and isinstance(first, paddle.Tensor):
        _check_shapes(examples, field)
        return paddle.stack(list(examples))
    return list(examples)


def _columns(examples: Sequence[Mapping[Any, Any]], field: str) -> dict[Any, list[Any]]:
    names = examples[0].keys()
    for example in examples:
        if not isinstance(example, Mapping) or example.keys() != names:
            got = ", ".join(map(str, example)) if isinstance(example, Mapping) else type(example).__name__
            raise _unequal(field, f"one has the fields {', '.join(map(str, names))}, another {got}")
    return {name: [example[name] for example in examples] for name in names}


def _tuple_columns(examples: Sequence[tuple[Any, ...]], field: str) -> list[tuple[Any, ...]]:
    length = len(examples[0])
    for example in examples:
        if not isinstance(example, tuple) or len(example) != length:
            got = len(example) if isinstance(example, tuple) else type(example).__name__
            raise _unequal(field, f"one is a tuple of {length}, another {got}")
    return list(zip(*examples, strict=True))


def _stack(examples: Sequence[Any], field: str) -> NDArray[Any] | list[Any]:
    arrays = [_array(example) for example in examples]
    if any(array.dtype.kind not in "biufc" for array in arrays):
        for example in examples:
            if isinstance(example, list) and any(isinstance(item, list | np.ndarray) for item in example):
                raise _unequal(field, "one is a list of lists of unequal length")
        return list(examples)
    _check_shapes(arrays, field)
    batch = np.stack(arrays)
    mixed = batch.dtype == np.float64 and all(array.dtype != np.float64 for array in arrays)  # integers and floats
    return batch.astype(np.float32) if mixed else batch


def _array(example: ArrayLike) -> NDArray[Any]:
    """As `numpy.asarray`, but Python's floats are float32, and what has no regular shape is an array of objects."""
    if isinstance(example, np.ndarray | np.generic):
        return np.asarray(example)
    try:
        array = np.asarray(example)
    except ValueError:  # a list of lists of unequal length
        return np.asarray(None)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _check_shapes(arrays: Sequence[Any], field: str) -> None:
    shape = list(arrays[0].shape)
    for array in arrays:
        if list(array.shape) != shape:
            raise _unequal(field, f"one has the shape {shape}, another {list(array.shape)}")


def _unequal(field: str, difference: str) -> DataError:
    where = f"the examples' field {field}" if field else "the examples"
    return DataError(f"{where} cannot be stacked: {difference}; make them alike, or give a collate= of your own")
