"""A place for an item that can be exchanged during a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from onion.engine.conditional import batch_ring
from onion.engine.drawing import settings
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.own_state import own_state
from onion.engine.rings import enter, refuse_coroutine
from onion.engine.state import State
from onion.errors import CheckpointError, CompositionError

if TYPE_CHECKING:
    from onion.engine.runner import Runner

HELD, PREFIX = "held", "item."
"""What a saved state calls the item that was held, and how the keys of that item's own state begin."""


class Slot(RunnerItem):
    """Hold an item that is exchanged between two passes, or none.

        slot = Slot()
        runner = Runner(slot, DataProvider(train), mailbox, updater, machine)
        ...
        mailbox.post(lambda state: slot.put(Tester(test)))  # from another thread; slot.put(None) takes it out

    The item is a ring like any other, in the place of the slot: its run begins on the way into the pass that it comes
    with, and ends on the way into the pass that it is missing from, or with the run. What belongs inside an item from
    the outset (an updater's gradient machine) needs no slot, and no Runner goes into one.

    A checkpoint has the item that was there when it was taken, not one that was still to come. A resumed run begins
    with the like of it: made by the same class with the same settings, as drawings show them.

    Args:
        item: the first one. Default: none.

    Raises:
        CompositionError: ``item`` is no item, or it cannot be where the slot is.
    """

    keep_for_inference = False

    def __init__(self, item: RunnerItem | None = None) -> None:
        _refuse_stranger(item)
        self.item = self._next = item
        self._held = _written(item)
        self._ring: Callable[[State], HookIterator] | None = None
        self._runner: Runner | None = None
        self._run = ExitStack()

    def put(self, item: RunnerItem | None) -> None:
        """Exchange the item on the way into the next pass; None: take it out.

        Raises:
            CompositionError: as for the class; nothing is exchanged. Where no run is under way, the next one looks
                whether the item can be here.
        """
        _refuse_stranger(item)
        if self._runner is not None and item is not None:
            self._admit(item, self._runner)
        self._next = item

    def check(self, runner: Runner) -> None:
        """Check whether the item could be here."""
        if self._next is not None:
            self._admit(self._next, runner)

    def _admit(self, item: RunnerItem, runner: Runner) -> None:
        try:
            runner.replace(self, item)
        except CompositionError as error:
            reason, _, _ = str(error).partition("\n\n")  # without the drawing: the runner that is built has its own
            raise CompositionError(reason) from None

    def initialize(self, state: State) -> HookIterator:
        """Hold the item's run open, whichever item it is by then.

        A run inside this one whose onion shares the slot (a tester's) has the item that is there, and exchanges none.
        """
        if self._runner is not None:
            with ExitStack() as run:
                self._begin(state, run)
                yield
            return
        self._runner = state.runner
        try:
            self.put(self._next)  # it may have come after the runner was built
            with ExitStack() as self._run:
                self._come(state)
                yield
        finally:
            self._runner = None

    def on_pass(self, state: State) -> HookIterator:
        """Exchange the item if another was put in; surround the pass by it."""
        if self._next is not self.item and state.runner is self._runner:
            self._run.close()
            self._come(state)
        with ExitStack() as rings:
            if self.item is not None:
                enter([self.item.on_pass], state, rings)
            yield

    def _come(self, state: State) -> None:
        self.item, self._held = self._next, self._to_hold()
        self._ring = None if self.item is None else batch_ring(self.item)
        self._begin(state, self._run)

    def _begin(self, state: State, run: ExitStack) -> None:
        if self.item is not None:
            enter([*own_state([self.item]), self.item.initialize], state, run)

    def on_batch(self, state: State) -> HookIterator:
        """Run the inside within the item's ring."""
        if self._ring is None:
            yield
        else:
            yield from self._ring(state)

    def identity(self) -> dict[str, Any]:
        """Return nothing: what a slot holds may change, and is part of its state."""
        return {}

    def log_values(self) -> Mapping[str, float]:
        """Return the item's."""
        return {} if self.item is None else self.item.log_values()

    def state_dict(self) -> dict[str, Any]:
        """Return the item's state, and how the item is written."""
        inner = {} if self.item is None else self.item.state_dict()
        return {HELD: self._held, **{PREFIX + key: value for key, value in inner.items()}}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Hand it to the item that the run begins with.

        Raises:
            CheckpointError: it is of another one.
        """
        held = self._to_hold()
        if saved[HELD] != held:
            raise CheckpointError(
                f"{self.name} was saved with {saved[HELD] or 'nothing'} in it, and this run would begin with "
                f"{held or 'nothing'}; put in what was saved before the run, as Slot({saved[HELD]}) or with "
                f"put({saved[HELD] or None}), and exchange it once the run is under way."
            )
        if self._next is not None:
            inner = {key.removeprefix(PREFIX): value for key, value in saved.items() if key != HELD}
            self._next.load_state_dict(inner)

    def _to_hold(self) -> str:
        """Write the item to come; one that has come as it was then, for its attributes may have moved since."""
        return self._held if self._next is self.item else _written(self._next)


def _written(item: RunnerItem | None) -> str:
    return "" if item is None else settings(item)


def _refuse_stranger(item: object) -> None:
    if item is None:
        return
    if not isinstance(item, RunnerItem):
        raise CompositionError(f"Slot holds an item or None, not a {type(item).__name__}: Slot(Item(...)).")
    if isinstance(item, Slot):
        raise CompositionError(
            "Slot cannot hold another slot; put the item itself into it, or use a second slot beside it."
        )
    if item.is_runner:
        raise CompositionError(f"Slot holds a single item, and {item.name} holds items of its own; give each a slot.")
    refuse_coroutine(item.on_batch)
