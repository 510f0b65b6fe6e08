"""A place in the onion for an item that comes and goes while the run goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from onion.errors import CheckpointError, CompositionError
from onion.item import RunnerItem, Way
from onion.items.sometimes import batch_ring
from onion.rings import enter, refuse_coroutine
from onion.state import State

if TYPE_CHECKING:
    from onion.runner import Runner

HELD = "held"
"""What a saved state calls the class of the item."""


class Slot(RunnerItem):
    """Hold an item that is exchanged between two passes, or none.

        slot = Slot()
        runner = Runner(slot, DataProvider(train), mailbox, updater, machine)
        ...
        mailbox.post(lambda state: slot.put(Tester(test)))  # from another thread; slot.put(None) takes it out

    The item is a ring like any other, in the place of the slot: its run begins on the way into the pass that it comes
    with, and ends on the way into the pass that it is missing from, or with the run. What stands inside an item from
    the outset (an updater's gradient machine) needs no slot, and no Runner goes into one.

    Args:
        item: the first one. Default: none.

    Raises:
        CompositionError: ``item`` is no item, or it cannot stand where the slot stands.
    """

    predicts = False

    def __init__(self, item: RunnerItem | None = None) -> None:
        _refuse_stranger(item)
        self.item = item
        self._next = item
        self._ring: Callable[[State], Way] | None = None
        self._runner: Runner | None = None
        self._run = ExitStack()

    def put(self, item: RunnerItem | None) -> None:
        """Exchange the item on the way into the next pass; None: take it out.

        Raises:
            CompositionError: as for the class; nothing is exchanged. Where no run is under way, the next one looks
                whether the item can stand here.
        """
        _refuse_stranger(item)
        if self._runner is not None and item is not None:
            self._admit(item, self._runner)
        self._next = item

    def check(self, runner: Runner) -> None:
        """Let the item look whether it could stand here."""
        if self._next is not None:
            self._admit(self._next, runner)

    def _admit(self, item: RunnerItem, runner: Runner) -> None:
        try:
            runner.replace(self, item)
        except CompositionError as error:
            reason, _, _ = str(error).partition("\n\n")  # without the drawing: the runner that is built has its own
            raise CompositionError(reason) from None

    def initialize(self, state: State) -> Way:
        """Hold the item's run open, whichever item it is by then."""
        self._runner = state.runner
        try:
            self.put(self._next)  # it may have come after the runner was built
            with ExitStack() as self._run:
                self._come(state)
                yield
        finally:
            self._runner = None

    def on_pass(self, state: State) -> Way:
        """Exchange the item if another was put in; surround the pass by it."""
        if self._next is not self.item:
            self._run.close()
            self._come(state)
        with ExitStack() as rings:
            if self.item is not None:
                enter([self.item.on_pass], state, rings)
            yield

    def _come(self, state: State) -> None:
        self.item = self._next
        self._ring = None if self.item is None else batch_ring(self.item)
        if self.item is not None:
            enter([self.item.initialize], state, self._run)

    def on_batch(self, state: State) -> Way:
        """Run the inside within the item's ring."""
        if self._ring is None:
            yield
        else:
            yield from self._ring(state)

    def readings(self) -> Mapping[str, float]:
        """Return the item's."""
        return {} if self.item is None else self.item.readings()

    def state_dict(self) -> dict[str, Any]:
        """Return the item's state, and what kind of item it is."""
        return {HELD: ""} if self.item is None else {**self.item.state_dict(), HELD: type(self.item).__name__}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Hand it to the item.

        Raises:
            CheckpointError: it is of another kind of item.
        """
        held = "" if self._next is None else type(self._next).__name__
        if saved[HELD] != held:
            raise CheckpointError(
                f"{self.name} was saved with {saved[HELD] or 'nothing'} in it, and now holds {held or 'nothing'}; make "
                f"it as Slot({saved[HELD] + '(...)' if saved[HELD] else ''})."
            )
        if self._next is not None:
            self._next.load_state_dict({key: value for key, value in saved.items() if key != HELD})


def _refuse_stranger(item: object) -> None:
    if item is None:
        return
    if not isinstance(item, RunnerItem):
        raise CompositionError(f"Slot holds an item or None, not a {type(item).__name__}: Slot(Item(...)).")
    if getattr(item, "is_runner", False):
        raise CompositionError(f"Slot holds a single item, and {item.name} holds items of its own; give each a slot.")
    refuse_coroutine(item.on_batch)
