"""The places of items relative to each other: what an item requires, and the error for any other place.

An item has abilities, class attributes that are true (``provides_data``, ``moves_weights`` and others that RunnerItem
declares, or some of one's own), and rules in its class attribute ``place_rules`` that name the abilities of others.
What no rule can express, an item checks in ``check``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

import attrs

from onion.engine.item import RunnerItem
from onion.errors import CompositionError

if TYPE_CHECKING:
    from onion.engine.item_tree import Layout


class Rule(Protocol):
    """What an item asks of its place."""

    def broken_by(self, item: RunnerItem, layout: Layout) -> Iterator[str]:
        """Say what is wrong with the item's place in an onion."""


@attrs.frozen
class Behind:
    """An item with the ability comes before this one on the way into a pass, if there is one in the onion.

    Attributes:
        ability: of the other item.
        why: what the other item does, after "which".
    """

    ability: str
    why: str

    def broken_by(self, item: RunnerItem, layout: Layout) -> Iterator[str]:
        """Name the item that comes after."""
        others = [other for other in layout.able(self.ability) if other is not item]
        if others and layout.comes_after(others[0], item):
            yield f"{item.name} is outside {others[0].name}, which {self.why}; move it further in (after it)."


@attrs.frozen
class NotInside:
    """No item with the ability has this one inside it, in its batch ring.

    Attributes:
        ability: of the other item.
        why: what would come of it, after "which".
    """

    ability: str
    why: str

    def broken_by(self, item: RunnerItem, layout: Layout) -> Iterator[str]:
        """Name the item around."""
        for other in layout.able(self.ability):
            if layout.stands_inside(item, other):
                yield f"{item.name} is inside {other.name}, which {self.why}; move it further out (before it)."


@attrs.frozen
class Around:
    """Where items of the onion have the ability, one of them is inside this one. A part of an onion may have none.

    Attributes:
        abilities: of the other items; any of them will do.
        why: what this item does, after its name.
    """

    abilities: tuple[str, ...]
    why: str

    def broken_by(self, item: RunnerItem, layout: Layout) -> Iterator[str]:
        """Name the items that are elsewhere."""
        others = [other for ability in self.abilities for other in layout.able(ability) if other is not item]
        if others and not any(layout.stands_inside(other, item) for other in others):
            yield f"{item.name} {self.why}, and has none inside it; move it further out (before {others[-1].name})."


BEHIND_DATA = Behind("provides_data", "provides the data")
"""The place of what works on batches."""

NETWORKS = ("computes_gradients", "runs_network")
"""The abilities of what runs a network."""

UNREPEATED = NotInside("runs_again", "runs its inside more than once a batch, so it would act as often")
"""The place of what acts once a step."""

OUTSIDE_REPORTS = NotInside("reports", "reports its metrics after it, so they would be written a step late")
"""The place of what writes figures down."""


def refuse_wrong_place(item: RunnerItem, layout: Layout, rules: Iterable[Rule]) -> None:
    """Raise CompositionError where a rule for an item is broken."""
    for rule in rules:
        for complaint in rule.broken_by(item, layout):
            raise CompositionError(complaint)
