"""A run that goes on with more tasks: what of it may be new, and what has to be as it was saved.

Items declare it: ``grows`` names the parts of their identity that may have more entries, ``may_join`` lets an item be
there that the saved run lacked, and ``extended`` gives the state of what is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from onion.engine.identity import Identity, differences
from onion.engine.item import RunnerItem
from onion.errors import CheckpointError

TASKS = "tasks"
"""The part of an identity whose new entries are the tasks that were added."""


@attrs.frozen
class Extension:
    """How an onion is more than the one that was saved.

    Attributes:
        there: what the saved onion is made of.
        here: what this one is made of.
        items: of this one, by name.
    """

    there: Identity
    here: Identity
    items: Mapping[str, RunnerItem]

    def tasks(self) -> list[str]:
        """Return the tasks that were added."""
        return [key for name in self.here if name in self.there for key in self._new(name, TASKS)]

    def refuse_other(self, folder: Path) -> None:
        """Refuse whatever is neither as it was saved nor such as may be added.

        Raises:
            CheckpointError: the message says what it is, and what an extended run has to have.
        """
        if wrong := self._wrong():
            raise CheckpointError(
                f"{folder} holds a run that cannot be extended to this one ({'; '.join(wrong)}); an extended run has "
                "the tasks, data and settings of the saved one, and its stages as the first ones: add to them, or "
                "choose an empty folder."
            )

    def fits(self) -> bool:
        """Return whether this onion has more tasks than the saved one, and is the same otherwise."""
        return bool(self.tasks()) and not self._wrong()

    def _wrong(self) -> list[str]:
        """Return, in words, what is neither as it was saved nor such as may be added."""
        other = differences(self.there, self._without_new())
        return [*self._missing()] or [words for told in other.values() for words in told]

    def _missing(self) -> Iterator[str]:
        """Yield, in words, what an item had and has no more."""
        for name in self.here:
            for part in self._growing(name):
                for key in self.there[name][part].keys() - self.here[name][part].keys():
                    yield f"{name} has no {key!r} among its {part}"

    def _without_new(self) -> Identity:
        """Return what this onion is made of, without all that may be new."""
        return {
            name: {**own, **{part: self._known(name, part) for part in self._growing(name)}}
            for name, own in self.here.items()
            if not self._joined(name)
        }

    def _growing(self, name: str) -> list[str]:
        """Return the parts of an item's identity that may have more entries than there were."""
        there, here = self.there.get(name, {}), self.here[name]
        own = self.items[name].grows if name in self.items else ()
        return [part for part in own if isinstance(there.get(part), dict) and isinstance(here.get(part), dict)]

    def _known(self, name: str, part: str) -> dict[str, Any]:
        return {key: value for key, value in self.here[name][part].items() if key in self.there[name][part]}

    def _new(self, name: str, part: str) -> list[str]:
        if part not in self._growing(name):
            return []
        return [key for key in self.here[name][part] if key not in self.there[name][part]]

    def _joined(self, name: str) -> bool:
        """Return whether an item is new and may be, or is held by one that is."""
        if name in self.there or name not in self.here:
            return False
        holder = self.here[name]["in"]
        return self.items[name].may_join or (holder is not None and self._joined(holder))
