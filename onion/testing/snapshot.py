"""Snapshots of values, which are compared bit by bit with those of another moment.

A snapshot shares no memory with the value. Objects without comparable state (functions, files, threads, optimizers)
and those that are compared separately (items, runners) are UNSEEN in it, which is equal to everything.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import random
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from types import MappingProxyType, SimpleNamespace
from typing import Any, TypeAlias

import attrs
import numpy as np

from onion.engine.item import RunnerItem
from onion.engine.state import State

SCALARS = (type(None), bool, int, float, complex, str, bytes, range, date, timedelta, itertools.count)
NOT_LOOKED_INTO = (RunnerItem, State, type, io.IOBase)
FOREIGN = {*sys.stdlib_module_names, "paddle", "numpy"}
"""Packages whose objects are not inspected, except the types that are handled here."""

LONGEST = 64
"""Characters of a value that a message shows."""

Path: TypeAlias = tuple[str, ...]
"""Where a part of a value is inside it: ``(".stats", "['a']", "[3]")``."""


@attrs.frozen
class Bits:
    """An array or a tensor.

    Attributes:
        dtype: numpy's name of the type.
        shape: the shape.
        digest: of the bytes.
        begins: the first numbers, for messages.
    """

    dtype: str
    shape: tuple[int, ...]
    digest: str
    begins: str = attrs.field(eq=False)

    def __repr__(self) -> str:
        return f"{self.dtype} {list(self.shape)} {self.begins} (digest {self.digest[:6]})"


@attrs.frozen
class Fields:
    """An object: the name of its class, and its attributes."""

    kind: str
    held: dict[str, Any]


@attrs.frozen
class Opaque:
    """An iterator, whose position cannot be read."""

    kind: str


class _Sign:
    """A marker."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


UNSEEN, MISSING = _Sign("..."), _Sign("not there")


@attrs.frozen
class Difference:
    """Where two snapshots differ.

    Attributes:
        path: the place.
        one: the value in the first.
        other: the value in the second.
    """

    path: Path
    one: Any
    other: Any

    def shown(self) -> tuple[str, str]:
        """Return both values, shortened around the first character that differs."""
        one, other = repr(self.one), repr(self.other)
        same = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
        begin = max(0, same - LONGEST // 3) if max(len(one), len(other)) > LONGEST else 0
        return _cut(one, begin), _cut(other, begin)


def written(path: Path) -> str:
    """Write a path as Python would: ``stats['a'][3]``."""
    return "".join(path).removeprefix(".")


def _cut(text: str, begin: int) -> str:
    end = begin + LONGEST
    return f"{'...' if begin else ''}{text[begin:end]}{'...' if len(text) > end else ''}"


# -- taking ------------------------------------------------------------------------------------------------------------


def snapshot(value: Any, seen: dict[int, tuple[Any, Any]] | None = None) -> Any:
    """Take a snapshot.

    Args:
        value: the value.
        seen: the objects visited before at this moment, with their snapshots, by ``id``. An object inside itself (a
            cycle) is UNSEEN.
    """
    seen = {} if seen is None else seen
    if isinstance(value, SCALARS):
        return repr(value) if isinstance(value, itertools.count) else value
    if id(value) not in seen:
        seen[id(value)] = value, UNSEEN  # the object too: were it gone, another one could get its id
        seen[id(value)] = value, _taken(value, lambda inner: snapshot(inner, seen))
    return seen[id(value)][1]


def _taken(value: Any, inner: Callable[[Any], Any]) -> Any:
    if isinstance(value, np.ndarray | np.generic) or hasattr(type(value), "numpy"):
        return _bits(value if isinstance(value, np.ndarray | np.generic) else value.numpy(), inner)
    if isinstance(value, dict | MappingProxyType):
        return {key: inner(each) for key, each in list(value.items())}
    if isinstance(value, list | tuple | deque):
        return [inner(each) for each in list(value)]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    state = _state_of(value)
    return _fields(value, inner) if state is None else inner(state)


def _bits(array: Any, inner: Callable[[Any], Any]) -> Any:
    if array.ndim == 0 and array.dtype.kind in "biufc":
        return array.item()  # a checkpoint returns a number for an array without an axis
    if array.dtype.kind == "O":
        return inner(array.tolist())
    array = np.ascontiguousarray(array)
    begins = ", ".join(f"{each:.6g}" if array.dtype.kind == "f" else str(each) for each in array.ravel()[:3])
    return Bits(array.dtype.name, array.shape, hashlib.sha256(array.tobytes()).hexdigest(), f"{begins}, ...")


def _state_of(value: Any) -> Any:
    """Return the state of a random generator, or the tensors of a network; None for anything else."""
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, np.random.RandomState):
        return value.get_state(legacy=True)
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, np.random.BitGenerator):
        return value.state
    return dict(value.state_dict()) if is_layer(value) else None


def is_layer(value: object) -> bool:
    """Return whether a value is a ``paddle.nn.Layer``; False as long as Paddle is not imported."""
    paddle = sys.modules.get("paddle")
    return paddle is not None and isinstance(value, paddle.nn.Layer)


def _fields(value: Any, inner: Callable[[Any], Any]) -> Any:
    """Inspect an object of the user or of onion."""
    kind = type(value)
    foreign = kind.__module__.partition(".")[0] in FOREIGN and kind is not SimpleNamespace
    if foreign or isinstance(value, NOT_LOOKED_INTO) or is_optimizer(value):
        holds_a_place = isinstance(value, Iterator) and not isinstance(value, io.IOBase)
        return Opaque(kind.__name__) if holds_a_place else UNSEEN
    return Fields(kind.__name__, {name: inner(each) for name, each in _held(value)})


def is_optimizer(value: object) -> bool:
    """Return whether a value is a ``paddle.optimizer.Optimizer``; False as long as Paddle is not imported."""
    paddle = sys.modules.get("paddle")
    return paddle is not None and isinstance(value, paddle.optimizer.Optimizer)


def _held(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object, in ``__slots__`` too."""
    yield from list(getattr(value, "__dict__", {}).items())
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                yield name, getattr(value, name)


# -- comparing ---------------------------------------------------------------------------------------------------------


def differences(one: Any, other: Any, path: Path = ()) -> Iterator[Difference]:
    """Yield every place in which two snapshots differ.

    Lists of different lengths and dicts of different keys differ as a whole, objects attribute by attribute.
    """
    if one is UNSEEN or other is UNSEEN:
        return
    if isinstance(one, Fields) and isinstance(other, Fields) and one.kind == other.kind:
        for name in {**one.held, **other.held}:
            yield from differences(one.held.get(name, MISSING), other.held.get(name, MISSING), (*path, f".{name}"))
    elif isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        yield from _in_parts(one, other, path)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        yield from _in_parts(dict(enumerate(one)), dict(enumerate(other)), path)
    elif not _same(one, other):
        yield Difference(path, one, other)


def opaque(taken: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every iterator in a snapshot."""
    if isinstance(taken, Opaque):
        yield path
    elif isinstance(taken, Fields):
        for name, each in taken.held.items():
            yield from opaque(each, (*path, f".{name}"))
    elif isinstance(taken, dict | list):
        for key, each in taken.items() if isinstance(taken, dict) else enumerate(taken):
            yield from opaque(each, (*path, f"[{key!r}]"))


def _in_parts(one: Mapping[Any, Any], other: Mapping[Any, Any], path: Path) -> Iterator[Difference]:
    for key, each in one.items():
        yield from differences(each, other[key], (*path, f"[{key!r}]"))


def _same(one: Any, other: Any) -> bool:
    """Compare two values that are not containers of the same type; 3 and 3.0 are equal, 0.0 and -0.0 are not."""
    return repr(one) == repr(other) if type(one) is type(other) else bool(one == other)
