"""What a run is made of, as plain data, to compare a resumed run with the one that wrote the checkpoint."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

from onion.engine.item import RunnerItem, overrides
from onion.engine.item_tree import subitems, walk

DEPTH, LONGEST, MANY = 4, 16, 10_000
"""How deep nested objects are described; up to which length a list is described by its values, and by a checksum."""

Identity = dict[str, dict[str, Any]]
"""Name of an item -> its class, the runner it is in, and what else has to be the same; the outermost item first."""


def given(item: object) -> Iterator[tuple[str, Any, Any]]:
    """Give the constructor's arguments as (name, value, default), as far as the object keeps them under their names."""
    for parameter in inspect.signature(type(item).__init__).parameters.values():
        if isinstance(item, RunnerItem) and _is_inherited(item, parameter.name):
            yield parameter.name, parameter.default, parameter.default
        elif parameter.name != "self":
            try:
                value = getattr(item, parameter.name, parameter.default)
            except Exception:  # a property that cannot be read now
                value = parameter.default
            yield parameter.name, value, parameter.default


def _is_inherited(item: RunnerItem, name: str) -> bool:
    """Return whether an attribute is what RunnerItem itself declares, and so no argument that the item keeps."""
    mine = getattr(type(item), name, None)
    return name not in vars(item) and mine is not None and mine is vars(RunnerItem).get(name)


def constructed(item: RunnerItem) -> dict[str, Any]:
    """Return the constructor's arguments that an item keeps, as JSON values, without its name.

    Defaults are left out, so that an argument that a later version adds makes no difference to older checkpoints.
    """
    rings = subitems(item)  # are described one by one, as items of the onion
    return {name: _plain(value, DEPTH) for name, value in _chosen(item) if value is not rings}


def identity_of(runner: RunnerItem) -> Identity:
    """Describe an onion; items that only watch are left out."""
    return _onion(runner, DEPTH)


def _onion(runner: RunnerItem, depth: int) -> Identity:
    places = {id(inner): outer.name for outer in walk(subitems(runner)) for inner in subitems(outer)}
    described: Identity = {}
    for item in walk(subitems(runner)):
        if not item.passive:
            own = {name: _plain(value, depth) for name, value in _identity(item).items()}
            described[item.name] = {"class": type(item).__name__, "in": places.get(id(item)), **own}
    return described


def _identity(item: RunnerItem) -> Mapping[str, Any]:
    return item.identity() if overrides(item, "identity") else constructed(item)


def _chosen(value: object) -> Iterator[tuple[str, Any]]:
    """Give the arguments that are described: not the name, no defaults."""
    for name, kept, default in given(value):
        if name != "name" and not _same(kept, default) and not inspect.ismethod(kept):
            yield name, kept


def _same(value: object, default: object) -> bool:
    plain = isinstance(value, bool | int | float | str)  # of anything else == may be an array, or not be there at all
    return value is default or (plain and type(value) is type(default) and value == default)


def _plain(value: Any, depth: int) -> Any:
    """Turn anything into JSON values that are the same whenever it is made in the same way."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if getattr(value, "shape", None) in ((), []) and hasattr(value, "item"):
        value = value.item()  # a number of numpy's
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Path | timedelta):
        return str(value)
    if isinstance(value, partial):
        keywords = {name: _plain(kept, depth - 1) for name, kept in value.keywords.items()} if depth > 0 else {}
        return {"function": _plain(value.func, depth), **keywords}
    if callable(value) and hasattr(value, "__qualname__"):
        return value.__qualname__
    if isinstance(getattr(value, "shape", None), tuple | list) and hasattr(value, "dtype"):
        return f"{value.dtype} {list(value.shape)}"
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return _many(value, depth)
    if isinstance(value, RunnerItem) and subitems(value):
        return _onion(value, depth - 1) if depth > 0 else type(value).__name__
    return _object(value, depth)


def _many(values: Any, depth: int) -> Any:
    if len(values) > MANY or depth <= 0:
        return f"{len(values)} values"
    if isinstance(values, Mapping):
        return {str(_plain(key, depth)): _plain(value, depth - 1) for key, value in values.items()}
    listed = [_plain(value, depth - 1) for value in values]
    listed = sorted(listed, key=str) if isinstance(values, set | frozenset) else listed
    return listed if len(listed) <= LONGEST else f"{len(listed)} values, sha256 {_digest(listed)}"


def _digest(listed: list[Any]) -> str:
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def _object(value: Any, depth: int) -> Any:
    """Describe an object by its class and what it was made of; Paddle's by their class alone."""
    name, library = type(value).__name__, type(value).__module__.partition(".")[0]
    if depth <= 0 or library in ("paddle", "numpy", "builtins"):
        return name
    own = _identity(value) if isinstance(value, RunnerItem) else dict(_chosen(value))
    return {"class": name, **{key: _plain(kept, depth - 1) for key, kept in own.items()}}


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> dict[str, list[str]]:
    """Compare two identities; return what differs by the name of the item, in words.

    Args:
        there: of the run that was saved.
        here: of the run that would go on from it.
    """
    found: dict[str, list[str]] = {}
    for name in [*there, *(name for name in here if name not in there)]:
        if different := list(_differences(name, there.get(name), here.get(name))):
            found[name] = different
    order = [name for name in there if name in here]
    other = [name for name in here if name in there]
    if order != other and not found:
        moved = next(name for name, now in zip(order, other, strict=True) if name != now)
        found[moved] = [f"the order of the items is {', '.join(order)} there, {', '.join(other)} here"]
    return found


def _differences(name: str, there: Any, here: Any) -> Iterator[str]:
    if there is None or here is None:
        which, only = ("here", there) if here is None else ("there", here)
        yield f"there is no {name} ({only['class']}) {which}"
        return
    one, other = dict(_leaves(there, "")), dict(_leaves(here, ""))
    for leaf in [*one, *(leaf for leaf in other if leaf not in one)]:
        if one.get(leaf) != other.get(leaf):
            yield f"{name}: {leaf} {_shown(one, leaf)} there, {_shown(other, leaf)} here"


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if pairs is None or not value:
        yield path, value
        return
    for key, inner in pairs:
        yield from _leaves(inner, f"{path}.{key}" if path else str(key))


def _shown(leaves: Mapping[str, Any], leaf: str) -> str:
    return repr(leaves[leaf]) if leaf in leaves else "by default"
