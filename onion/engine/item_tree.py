"""The items of an onion as a tree: their places, their names, and new onions made from old ones.

A tree is the tuple of items given to a Runner; a Runner among them is a subtree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from onion.engine.item import RunnerItem
from onion.errors import CompositionError
from onion.host import launch

if TYPE_CHECKING:
    from onion.engine.timing import Timing

Selector: TypeAlias = "str | type[RunnerItem] | RunnerItem"
"""How items are chosen: by name, by class (subclasses too), or the very item."""

Items: TypeAlias = "tuple[RunnerItem, ...]"


class Nest(Protocol):
    """What an item has that holds others (``is_runner``).

    Attributes:
        items: the items that it holds.
        everyone: these and all that they hold, at every depth, in the order of ``walk``.
    """

    items: Items
    everyone: Items

    def with_items(self, items: Items, clock: Timing | None = None) -> RunnerItem:
        """Return the same with other items in it, and with a clock between each two rings if there is one."""


def subitems(item: RunnerItem) -> Items:
    """Return the items of a nested runner, and nothing for any other item."""
    return cast("Nest", item).items if item.is_runner else ()


def is_for_other_rank(item: RunnerItem) -> bool:
    """Return whether only the first of several processes runs an item, or all that it holds, and this is another."""
    held = subitems(item)
    return launch.rank() > 0 and (item.first_rank_only or (bool(held) and all(map(is_for_other_rank, held))))


def walk(items: Sequence[RunnerItem]) -> Iterator[RunnerItem]:
    """Give every item at every depth in order, nested runners before their own items."""
    for item in items:
        yield item
        if item.is_runner:
            yield from cast("Nest", item).everyone


def is_one_of(item: RunnerItem, items: Items) -> bool:
    """Return whether this very item is among items. Two items are never one for being equal."""
    return any(other is item for other in items)


def matches(item: RunnerItem, which: Selector) -> bool:
    """Tell whether a selector means this item."""
    if isinstance(which, str):
        return item.name == which
    if isinstance(which, type):
        return isinstance(item, which)
    return item is which


def holds(items: Sequence[RunnerItem], item: RunnerItem) -> bool:
    """Tell whether this very item is among items, at any depth."""
    return is_one_of(item, tuple(walk(items)))


def rebuild(items: Sequence[RunnerItem], put: Callable[[RunnerItem], Items]) -> Items:
    """Return the tree with ``put(item)`` in the place of every item.

    ``put`` returns ``(item,)`` for what stays. What is unchanged is shared; a nested runner in which something has
    changed is made again by its ``with_items``, and one that is left empty is dropped.
    """
    result: list[RunnerItem] = []
    for item in items:
        there = put(item)
        inner = subitems(item)
        if inner and _same(there, (item,)):
            changed = rebuild(inner, put)
            there = () if not changed else there if _same(changed, inner) else (cast("Nest", item).with_items(changed),)
        result += there
    return tuple(result)


def clocked(items: Sequence[RunnerItem], clock: Timing) -> Items:
    """Return the tree with a clock in every nested runner."""
    return tuple(
        cast("Nest", item).with_items(clocked(inner, clock), clock) if (inner := subitems(item)) else item
        for item in items
    )


def _same(items: Items, others: Items) -> bool:
    """Tell whether two tuples hold the very same items."""
    return list(map(id, items)) == list(map(id, others))


Span: TypeAlias = "tuple[int, int, int]"
"""Places in the order of ``walk``: an item's own, that behind all it holds, that behind all that is in its runner."""

NOWHERE: Span = (0, 0, 0)


class Layout:
    """The places of all items in a tree, computed once: a question costs no walk through it.

    Args:
        items: the tree; every item is in it once.
        everyone: all items at every depth, in the order of ``walk``.
    """

    def __init__(self, items: Items, everyone: Items) -> None:
        self._items, self.everyone = items, everyone
        self._holders = {id(inner): item for item in self.everyone for inner in subitems(item)}
        self._spans = self._measured()
        self._able: dict[str, Items] = {}

    def _measured(self) -> dict[int, Span]:
        """Measure every item: those it holds come before it in the walk back, and are counted by then."""
        sizes = dict.fromkeys(map(id, self.everyone), 1)
        for item in reversed(self.everyone):
            if holder := self._holders.get(id(item)):
                sizes[id(holder)] += sizes[id(item)]
        spans: dict[int, Span] = {}
        for place, item in enumerate(self.everyone):
            holder = self._holders.get(id(item))
            end = len(self.everyone) if holder is None else spans[id(holder)][0] + sizes[id(holder)]
            spans[id(item)] = place, place + sizes[id(item)], end
        return spans

    def inside(self, item: RunnerItem) -> Items:
        """Return all that runs inside an item's batch ring: what follows it in its own runner, at every depth."""
        _, start, end = self._spans.get(id(item), NOWHERE)
        return self.everyone[start:end]

    def holders(self, item: RunnerItem) -> Items:
        """Return the nested runners, and others that hold items, in which an item is, the outermost first."""
        found: list[RunnerItem] = []
        at = self._holders.get(id(item))
        while at is not None:
            found.append(at)
            at = self._holders.get(id(at))
        return tuple(reversed(found))

    def around(self, item: RunnerItem) -> Items:
        """Return the items inside whose batch rings that of ``item`` runs, the outermost first."""
        found: list[RunnerItem] = []
        at: RunnerItem | None = item if id(item) in self._spans else None
        while at is not None:
            holder = self._holders.get(id(at))
            beside = self._items if holder is None else subitems(holder)
            found += reversed(beside[: next(place for place, other in enumerate(beside) if other is at)])
            at = holder
        return tuple(reversed(found))

    def stands_inside(self, item: RunnerItem, other: RunnerItem) -> bool:
        """Tell whether an item's batch ring runs inside that of another, also of one that a third (Every) holds."""
        place, around = self._spans[id(item)][0], other
        while True:
            _, start, end = self._spans[id(around)]
            holder = self._holders.get(id(around))
            if start <= place < end or holder is None or not holder.lends_its_place:
                return start <= place < end
            around = holder

    def comes_after(self, item: RunnerItem, other: RunnerItem) -> bool:
        """Tell whether an item is entered after another on the way into a pass."""
        return self._spans[id(item)][0] > self._spans[id(other)][0]

    def able(self, ability: str) -> Items:
        """Return the items whose attribute of that name is true, in the order of ``walk``."""
        if ability not in self._able:
            self._able[ability] = tuple(item for item in self.everyone if getattr(item, ability, False))
        return self._able[ability]


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


def refuse_twice(items: Items) -> None:
    """Raise CompositionError for an item that is in two places.

    Args:
        items: everyone in the onion, in the order of ``walk``.
    """
    count = Counter(map(id, items))
    if len(count) < len(items):
        twice = next(item for item in items if count[id(item)] > 1)
        raise CompositionError(f"the item {twice.name!r} occurs twice in one runner; use a second instance.")


def number_names(items: Items) -> None:
    """Give items with the same default name their numbers, and refuse two that were given the same name.

    An item keeps its number as long as no other one has the same.

    Args:
        items: everyone in the onion, in the order of ``walk``.
    """
    by_name: dict[str, list[RunnerItem]] = {}
    for item in items:
        refuse_no_name(item)
        by_name.setdefault(item.name, []).append(item)
    taken, numbers = set(by_name), dict[str, int]()
    for same in [some for some in by_name.values() if len(some) > 1]:
        for item in sorted(same, key=lambda item: (not named(item), _numbered(item)))[1:]:
            if named(item) and not _numbered(item):
                raise CompositionError(f"two items are named {item.name!r}; give one of them another name.")
            item.name = _free_name(type(item).name, taken, numbers)
            taken.add(item.name)


LONGEST_NAME = 200
"""Bytes of a name in UTF-8, so that the files of a checkpoint can have it."""


def refuse_no_name(item: RunnerItem) -> None:
    """Raise CompositionError for a name that drawings, metrics or files cannot have."""
    name: object = item.name
    if isinstance(name, str) and name.isprintable() and 0 < len(name.encode()) <= LONGEST_NAME:
        return
    shown = repr(name)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}... ({len(shown)} characters)"
    raise CompositionError(
        f"a {type(item).__name__} is named {shown}; a name is a text of 1 to {LONGEST_NAME} bytes in UTF-8, without "
        "line breaks and other characters that cannot be shown."
    )


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
