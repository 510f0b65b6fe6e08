"""The items of an onion as a tree: who stands where, what each is called, and new onions made from old ones.

A tree is the tuple of items given to a Runner; a Runner among them is a subtree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from onion.errors import CompositionError
from onion.item import RunnerItem

if TYPE_CHECKING:
    from onion.timing import Timing

Selector: TypeAlias = "str | type[RunnerItem] | RunnerItem"
"""How items are chosen: by name, by class (subclasses too), or the very item."""

Items: TypeAlias = "tuple[RunnerItem, ...]"


def subitems(item: RunnerItem) -> Items:
    """Return the items of a nested runner, and nothing for any other item."""
    return getattr(item, "items", ()) if getattr(item, "is_runner", False) else ()


def walk(items: Sequence[RunnerItem]) -> Iterator[RunnerItem]:
    """Give every item at every depth in order, nested runners before their own items."""
    for item in items:
        yield item
        yield from walk(subitems(item))


def matches(item: RunnerItem, which: Selector) -> bool:
    """Tell whether a selector means this item."""
    if isinstance(which, str):
        return item.name == which
    if isinstance(which, type):
        return isinstance(item, which)
    return item is which


def holds(items: Sequence[RunnerItem], item: RunnerItem) -> bool:
    """Tell whether this very item stands among items, at any depth. Two items are never one for being equal."""
    return any(other is item for other in walk(items))


def rebuild(items: Sequence[RunnerItem], put: Callable[[RunnerItem], Items]) -> Items:
    """Return the tree with ``put(item)`` in the place of every item.

    ``put`` returns ``(item,)`` for what stays. What is unchanged is shared; a nested runner in which something has
    changed is made anew by its ``_like(items)``, and one that is left empty goes.
    """
    result: list[RunnerItem] = []
    for item in items:
        there = put(item)
        inner = subitems(item)
        if inner and _same(there, (item,)):
            changed = rebuild(inner, put)
            there = () if not changed else there if _same(changed, inner) else (_like(item, changed, None),)
        result += there
    return tuple(result)


def clocked(items: Sequence[RunnerItem], clock: Timing) -> Items:
    """Return the tree with a clock in every nested runner."""
    return tuple(_like(item, clocked(subitems(item), clock), clock) if subitems(item) else item for item in items)


def _like(nested: Any, items: Items, clock: Timing | None) -> RunnerItem:
    """Return what a nested runner, or another item that holds items, is with other ones in it."""
    return nested._like(items, clock)  # type: ignore[no-any-return]


def _same(items: Items, others: Items) -> bool:
    """Tell whether two tuples hold the very same items."""
    return list(map(id, items)) == list(map(id, others))


def inside(items: Sequence[RunnerItem], item: RunnerItem) -> Items:
    """Return all that runs inside an item's batch ring: what follows it in its own runner, at every depth."""
    for place, other in enumerate(items):
        if other is item:
            return tuple(walk(items[place + 1 :]))
        if holds(subitems(other), item):
            return inside(subitems(other), item)
    return ()


def refuse_strangers(items: Sequence[object]) -> None:
    """Raise CompositionError for what is no RunnerItem."""
    for place, item in enumerate(items, start=1):
        if isinstance(item, type) and issubclass(item, RunnerItem):
            raise CompositionError(f"item {place} is the class {item.__name__}: write {item.__name__}(...).")
        if not isinstance(item, RunnerItem):
            raise CompositionError(
                f"item {place} is a {type(item).__name__}, not a RunnerItem; wrap it in one "
                "(GradientMachine for a network, ParameterUpdater for an optimizer, Observer for functions)."
            )


def refuse_twice(items: Sequence[RunnerItem]) -> None:
    """Raise CompositionError for an item that stands in two places."""
    seen: set[int] = set()
    for item in walk(items):
        if id(item) in seen:
            raise CompositionError(f"the item {item.name!r} stands twice in one onion; a ring stands once.")
        seen.add(id(item))


def number_names(items: Sequence[RunnerItem]) -> None:
    """Give items with the same default name their numbers, and refuse two that were given the same name.

    An item keeps its number for as long as no other one stands there with the same.
    """
    everyone = sorted(walk(items), key=lambda item: (not named(item), _numbered(item)))
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    for item in everyone:
        if item.name in taken:
            if named(item) and not _numbered(item):
                raise CompositionError(f"two items are named {item.name!r}; give one of them another name.")
            item.name = _free_name(type(item).name, taken, numbers)
        taken.add(item.name)


def named(item: RunnerItem) -> bool:
    """Tell whether the instance has a name of its own, given or numbered."""
    return "name" in vars(item) or item.name != type(item).name


def by_default(item: RunnerItem) -> bool:
    """Tell whether an item's name is its class's, perhaps with a number, rather than one of its own."""
    return item.name == type(item).name or _numbered(item)


def _numbered(item: RunnerItem) -> bool:
    """Tell whether an item's name is its default one with a number."""
    name, _, number = item.name.rpartition("-")
    return name == type(item).name and number.isdecimal()


def _free_name(name: str, taken: set[str], numbers: dict[str, int]) -> str:
    """Return a class's name with the first free number, from 2 on; ``numbers`` keeps where to look from."""
    number = numbers.get(name, 2)
    while f"{name}-{number}" in taken:
        number += 1
    numbers[name] = number
    return f"{name}-{number}"
