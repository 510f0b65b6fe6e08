"""An item that holds items, finds and shows them: the part of a Runner that does not run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TypeVar, overload

from onion.engine import item_tree
from onion.engine.drawing import as_svg, as_text, save_drawing
from onion.engine.item import RunnerItem
from onion.engine.item_tree import Items, Layout, Selector
from onion.errors import OnionError

Found = TypeVar("Found", bound=RunnerItem)


class Holder(RunnerItem):
    """Items at every depth, and where each is.

    Args:
        items: the rings, the outermost first.

    Attributes:
        items: the same.
        everyone: these and all that they hold, at every depth, nested runners before their own items.

    Raises:
        CompositionError: something is no item.
    """

    is_runner = True

    def __init__(self, items: Items) -> None:
        item_tree.refuse_strangers(items)
        self.items: Items = items
        self.everyone: Items = tuple(item_tree.walk(items))

    def walk(self) -> Iterator[RunnerItem]:
        """Give every item at every depth, the outermost first."""
        return iter(self.everyone)

    def __iter__(self) -> Iterator[RunnerItem]:
        return self.walk()

    @cached_property
    def layout(self) -> Layout:
        """The place of every item."""
        return Layout(self.items, self.everyone)

    def inside(self, item: RunnerItem) -> Items:
        """Return the items whose batch rings run inside that of ``item``."""
        return self.layout.inside(item)

    def around(self, item: RunnerItem) -> Items:
        """Return the items inside whose batch rings that of ``item`` runs, the outermost first."""
        return self.layout.around(item)

    def all(self, which: type[Found]) -> list[Found]:
        """Return every item of a class, at every depth."""
        return [item for item in self.walk() if isinstance(item, which)]

    @overload
    def __getitem__(self, which: str) -> RunnerItem: ...
    @overload
    def __getitem__(self, which: type[Found]) -> Found: ...
    def __getitem__(self, which: str | type[RunnerItem]) -> RunnerItem:
        """Return the only item of that name or class, at any depth."""
        return self._one(which)

    def __contains__(self, which: Selector) -> bool:
        return any(item_tree.matches(item, which) for item in self.walk())

    def _one(self, which: Selector) -> RunnerItem:
        found = [item for item in self.walk() if item_tree.matches(item, which)]
        if len(found) != 1:
            wanted = which.__name__ if isinstance(which, type) else repr(which)
            raise OnionError(f"{len(found) or 'no'} items match {wanted}, not one, in\n\n{self}")
        return found[0]

    # -- showing ------------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(item.name for item in self.items)})"

    def _repr_svg_(self) -> str:
        """Return the picture that a notebook shows."""
        return as_svg(self)

    def draw(self, path: str | Path) -> None:
        """Write the onion as a picture (.svg) or as text (any other suffix)."""
        save_drawing(self, path)
