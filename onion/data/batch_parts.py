"""One batch -> pieces of it, and back: how many examples it has, a part of them, what the parts gave as a whole."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from onion.errors import DataError


def examples(batch: Any) -> int:
    """Count the examples of a batch: the length that all its arrays, tensors and lists have in common.

    They are looked for in dicts and tuples; numbers, strings, arrays without an axis and ``None`` have no length.

    Raises:
        DataError: There is no such length, or there are several, as where sequences are packed into flat arrays.

    >>> examples({"x": np.zeros([3, 8]), "texts": ["a", "b", "c"], "temperature": 0.5})
    3
    """
    lengths = dict(_lengths(batch, ""))
    if len(set(lengths.values())) != 1:
        told = ", ".join(f"{field or 'it'} has {length}" for field, length in lengths.items()) or "nothing has a length"
        raise DataError(f"cannot determine how many examples the batch has: {told}.")
    return next(iter(lengths.values()))


def split(batch: Any, size: int) -> list[Any]:
    """Cut a batch into pieces of ``size`` examples; the last one may have fewer. See `examples` for errors.

    Arrays, tensors and lists are cut along their first axis; anything else is shared by the pieces.
    """
    return [_cut(batch, slice(start, start + size)) for start in range(0, examples(batch), size)]


def join(parts: Sequence[Any]) -> Any:
    """Put together what was computed from the pieces of a batch: the opposite of `split`.

    Arrays, tensors and lists are joined along their first axis; of anything else the last one is taken.
    """
    last = parts[-1]
    if len(parts) == 1:
        return last
    if isinstance(last, list):
        return [each for part in parts for each in part]
    if isinstance(last, np.ndarray) and last.ndim:
        return np.concatenate(parts)
    if _is_tensor(last) and last.ndim:
        return sys.modules["paddle"].concat(list(parts))
    return _within(last, lambda key, _: join([part[key] for part in parts]))


def _lengths(value: Any, field: str) -> Iterator[tuple[str, int]]:
    """Give the name and the length of everything that has one."""
    if _has_length(value):
        yield field, len(value)
    elif isinstance(value, dict | tuple):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _lengths(each, f"{field}[{key!r}]")


def _cut(value: Any, part: slice) -> Any:
    return value[part] if _has_length(value) else _within(value, lambda _, each: _cut(each, part))


def _within(value: Any, function: Callable[[Any, Any], Any]) -> Any:
    """Return a dict or tuple with ``function(key, value)`` in the place of each value, and anything else as it is."""
    if isinstance(value, dict):
        return {key: function(key, each) for key, each in value.items()}
    if isinstance(value, tuple):
        values = [function(key, each) for key, each in enumerate(value)]
        return type(value)(*values) if hasattr(value, "_fields") else tuple(values)
    return value


def _has_length(value: Any) -> bool:
    return isinstance(value, list) or ((isinstance(value, np.ndarray) or _is_tensor(value)) and value.ndim > 0)


def _is_tensor(value: Any) -> bool:
    paddle = sys.modules.get("paddle")  # where Paddle is not imported there is no tensor either
    return paddle is not None and isinstance(value, paddle.Tensor)
