"""`Switch`: turn an item on and off from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onion.engine.conditional import Conditional
from onion.engine.item import RunnerItem
from onion.engine.state import State


class Switch(Conditional):
    """Run an item's batch hook while the switch is on; otherwise the inside runs without it.

        Runner(..., StreamProvider(spool), ControlServer(), Switch(ReplayBuffer(10_000, 0.5), on=False), ...)

    A ControlServer turns it on and off between two batches with ``POST /rings/<name>/enable``, by the name of the item
    or of the switch; a program sets ``on``, which is saved in checkpoints. See also
    ``onion.engine.conditional.Conditional``: the item's hooks around the run and the passes always run.

    Args:
        item: the item, or a Runner.
        on: the initial position, unless the run is resumed. Default True.

    Raises:
        CompositionError: ``item`` is not an item.
    """

    def __init__(self, item: RunnerItem, on: bool = True) -> None:
        super().__init__(item, "Switch(...)")
        self.on = on

    def is_active(self, state: State) -> bool:
        """Return whether it is on."""
        return self.on

    def identity(self) -> dict[str, Any]:
        """Return nothing: on or off, the run is the same."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Return whether it is on."""
        return {"on": self.on}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the state."""
        self.on = bool(saved["on"])
