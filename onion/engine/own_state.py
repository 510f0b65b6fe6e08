"""A separate state for each run in the items that runs share.

Every run begins with ``reset`` of its items. Where an outer run has the same item, the item's attributes are set aside,
and restored when the inner run has ended, in whatever way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from onion.engine.item import LOADED, RUN, HookIterator, RunnerItem, is_in_use, overrides
from onion.engine.rings import Hook
from onion.engine.state import State
from onion.errors import HookError


def own_state(items: Iterable[RunnerItem]) -> list[Hook]:
    """Return the hook around a run that gives items a separate state for it; none where no item needs it."""
    kept = [item for item in items if item.outermost_only or overrides(item, "reset")]

    def begin(state: State) -> HookIterator:
        around = [(item, (dict(vars(item)), _in_slots(item)) if is_in_use(item) else None) for item in kept]
        try:
            for item in kept:
                vars(item)[RUN] = state
                _reset(item)
            yield
        finally:
            for item, attributes in around:
                if attributes is None:
                    vars(item).pop(RUN, None)
                else:
                    _restore(item, *attributes)

    return [begin] if kept else []


def _reset(item: RunnerItem) -> None:
    """Reset an item, and load the state that was loaded for this run before it began, if any."""
    loaded = vars(item).pop(LOADED, None)
    answer: object = item.reset()  # type: ignore[func-returns-value]
    if answer is not None:
        raise HookError(
            f"{item.name} ({type(item).__name__}).reset returned {type(answer).__name__}; it is a plain function that "
            "sets attributes, and returns nothing."
        )
    if loaded is not None:
        item.load_state_dict(loaded)


def _in_slots(item: RunnerItem) -> dict[str, Any]:
    """Return the attributes that an item of a class with ``__slots__``, as ``attrs.define`` makes it, has in those."""
    names = [name for kind in type(item).__mro__ for name in vars(kind).get("__slots__", ()) if name != "__weakref__"]
    return {name: getattr(item, name) for name in names if hasattr(item, name)}


def _restore(item: RunnerItem, attributes: Mapping[str, Any], in_slots: Mapping[str, Any]) -> None:
    """Restore the attributes of the outer run; other threads may read them meanwhile."""
    vars(item).update(attributes)
    for name in vars(item).keys() - attributes.keys():
        del vars(item)[name]
    for name, value in in_slots.items():
        object.__setattr__(item, name, value)
