"""The arguments of what loads data: their types and checks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onion.errors import DataError

Length = Callable[[Any], int] | Sequence[int] | NDArray[np.integer]
"""The length of an example by a function, or the lengths of all."""

Weights = Sequence[float] | NDArray[np.floating | np.integer]
"""How often each example is drawn, in proportion to the others."""


def at_least(name: str, value: int, least: int) -> None:
    """Raise ValueError for what is no integer from ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")


def check_timeout(timeout: float | None, prefetch: int) -> None:
    """Raise ValueError for a timeout that is out of range, or that cannot be measured."""
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, Real) or not 0 < timeout < threading.TIMEOUT_MAX:
        raise ValueError(f"timeout must be a number of seconds > 0, got {timeout!r}")
    if prefetch == 0:
        raise ValueError(
            "timeout= needs the background thread, prefetch >= 1: without it the run itself is inside the source, "
            "and cannot measure the time"
        )


def checked_weights(weights: Weights, size: int) -> NDArray[np.float64]:
    """Return the weights of so many examples; DataError for what are none."""
    array = np.asarray(weights)
    if array.shape != (size,) or array.dtype.kind not in "iuf":
        got = f"{array.dtype} {list(array.shape)}"
        raise DataError(f"weights= must give one number for each of the {size} examples, got {got}")
    array = array.astype(np.float64)
    if not (np.isfinite(array).all() and (array >= 0).all() and 0 < array.sum() < np.inf):
        raise DataError("weights= must be finite numbers >= 0, one of them above 0")
    return array


def checked_lengths(lengths: Sequence[int] | NDArray[np.integer], size: int) -> NDArray[np.integer]:
    """Return the lengths of so many examples; DataError for what are none."""
    array = np.asarray(lengths)
    if array.shape != (size,) or array.dtype.kind not in "iu":
        got = f"{array.dtype} {list(array.shape)}"
        raise DataError(f"lengths= must give one integer for each of the {size} examples, got {got}")
    return array


def refuse_of_stream(**given: bool) -> None:
    """Raise DataError for the arguments that are given and need a source with a length."""
    for name in (name for name, there in given.items() if there):
        remedy = "pass a list of it" + (", or shuffle_buffer=" if name == "shuffle" else "")
        raise DataError(f"{name}= needs a source with a length, and this one is a stream; {remedy}")
