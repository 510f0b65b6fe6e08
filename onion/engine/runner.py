"""The Runner: composes the rings once and runs the loop.

with the initialize rings:
    for each pass:
        with the on_pass rings:
            for state.batch in state.batches:
                with the on_batch rings: count it
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from operator import length_hint
from types import TracebackType

from onion.engine import item_tree
from onion.engine.item import RunnerItem, is_in_use, overrides
from onion.engine.item_holder import Holder
from onion.engine.item_tree import Items, Selector
from onion.engine.own_state import own_state
from onion.engine.placement import refuse_wrong_place
from onion.engine.rings import Hook, Ring, compose, enter, hold, refuse_coroutine
from onion.engine.state import State
from onion.engine.timing import Timing
from onion.errors import CompositionError, HookError, OnionError
from onion.host import launch
from onion.host.process_limits import room_for_calls
from onion.validation import is_count


def _nothing(state: State) -> None:
    """Do nothing at the center of a nested runner, whose work is done on the way in."""


def _count(state: State) -> None:
    """Count a batch that reaches the center of the onion, once."""
    state.step = state.next_step


class Runner(Holder):
    """An onion of items; the first is the outermost ring.

        Runner(DataProvider(data), ParameterUpdater(optimizer), GradientMachine(network)).run(passes=3)

    A Runner is itself an item: inside another one its batch rings wind and unwind before the outer onion goes further
    in, while its ``initialize`` and ``on_pass`` rings stay open around what is further in.

    Args:
        items: the rings, the outermost first. They are shared, not copied.
        name: what it is called inside another onion; default ``runner``, numbered if there are several.
        state: the State class of a run; default State.
        timing: the clock to put between each two rings; ``timed()`` is the short way to one.

    Attributes:
        current_run: the State of the run that is under way, or None.
        state_class: the State class of a run.
        clock: the clock between the rings, or None.

    Raises:
        CompositionError: the onion cannot work as composed; the message shows its drawing, if it consists of items.
    """

    def __init__(
        self, *items: RunnerItem, name: str | None = None, state: type[State] = State, timing: Timing | None = None
    ) -> None:
        super().__init__(items)
        if name is not None:
            self.name = name
        self.state_class, self.clock = state, timing
        self.current_run: State | None = None
        self._rings: ExitStack | None = None
        try:
            item_tree.refuse_no_name(self)
            item_tree.refuse_twice(self.everyone)
            item_tree.number_names(self.everyone)
            for item in self.everyone:
                if item.place_rules:
                    refuse_wrong_place(item, self.layout, item.place_rules)
                item.check(self)
            self._outermost_only = tuple(item for item in self.everyone if item.outermost_only)
            self._others_work = tuple(filter(item_tree.is_for_other_rank, self.everyone))
            self._work = self._nested_ring()
            self._compose()
        except CompositionError as error:
            raise CompositionError(f"{error}\n\n{self}") from None

    # -- running ------------------------------------------------------------------------------------------------------

    def run(self, passes: int | None = None, steps: int | None = None, parent: State | None = None) -> State:
        """Run until ``passes`` passes or ``steps`` batches are finished, or an item stops the run.

        Both count over the whole run, resumed runs included: after a resumption at step 60, ``steps=100`` runs 40.

        Args:
            passes: number of passes over the data; None: no limit.
            steps: number of batches; None: no limit.
            parent: the state of the run that starts this one from a hook.

        Returns:
            The run's State as the last ring left it.

        Raises:
            OnionError: a number is none; nothing was run.
        """
        for name, number in (("passes", passes), ("steps", steps)):
            if number is not None and not is_count(number):
                raise OnionError(f"run: {name} must be an integer >= 0, or None for no limit; got {number!r}.")
        state = self._begin(parent, passes, steps)
        limit = math.inf if steps is None else steps
        try:
            hold(self._initialize, partial(self._run_passes, math.inf if passes is None else passes, limit), state)
        finally:
            self.current_run = None
        return state

    def run_pass(self) -> State:
        """Run one pass, inside ``with runner:``; return the State. A stopped run runs no further pass."""
        state, rings = self.current_run, self._rings
        if state is None or rings is None:
            raise HookError("run_pass() must be called in the body of 'with runner:', not in a hook.")
        self._start_clock()
        self._rings = None
        try:
            self._run_passes(state.pass_id + 1, math.inf, state)
        except BaseException:
            state.batch_id = 0  # should the body go on after an error, then with a pass from its first batch
            raise
        finally:
            self._rings = rings
        return state

    def __enter__(self) -> Runner:
        state = self._begin(None)
        try:
            with ExitStack() as rings:
                enter(self._initialize, state, rings)
                self._rings = rings.pop_all()
        finally:
            self.current_run = state if self._rings else None
        if self._rings is None:
            raise HookError("an item swallowed an error on the way into 'with runner:', whose body cannot be skipped.")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        rings, self._rings = self._rings, None
        try:
            return rings.__exit__(kind, error, trace) if rings else None
        finally:
            self.current_run = None

    def _begin(self, parent: State | None, passes: int | None = None, steps: int | None = None) -> State:
        if self.current_run is not None:
            raise HookError("this runner is already running; an inner run needs a runner of its own (see 'without').")
        self._refuse_apart(parent)
        taken = tuple(item for item in self._outermost_only if is_in_use(item)) + self._others_work
        if taken or self._left_out:
            self._compose(without=taken)
        self.current_run = self.state_class(parent=parent, runner=self, passes_asked=passes, steps_asked=steps)
        self._start_clock()
        return self.current_run

    def _refuse_apart(self, parent: State | None) -> None:
        """Refuse to run on its own what a launcher has started several times: each would train a network apart."""
        if parent is None and launch.world_size() > 1 and not any(item.joins_group for item in self.everyone):
            raise CompositionError(
                f"{launch.world_size()} processes were launched, and each would train a network of its own: run "
                "distributed(runner) of onion.distributed, or start a single process."
            )

    def _start_clock(self) -> None:
        if self.clock:
            self.clock.start()

    def _run_passes(self, passes: float, limit: float, state: State) -> None:
        with room_for_calls(len(self.everyone)):
            while state.stopped is None and state.pass_id < passes and state.step < limit:
                state.pass_cut, state.batches, state.before_batches, state.data_error = False, None, None, None
                state.pass_stopped = state.stopped  # not None where a signal has come since
                hold(self._pass, partial(self._run_batches, limit), state)
                if state.pass_cut:
                    return
                if passes == math.inf and state.batch_id == 0 and state.pass_stopped is None:
                    raise HookError(f"pass {state.pass_id} had no batch; without a number of passes this never ends.")
                state.pass_id, state.batch_id = state.pass_id + 1, 0

    def _run_batches(self, limit: float, state: State) -> None:
        if state.batches is None:
            raise HookError("no item put batches on the state on the way into the pass; add a DataProvider.")
        state.batches = iter(state.batches)
        if state.before_batches is not None:
            state.before_batches()
        on_batch = self._batch
        if state.pass_stopped is None:
            for state.batch in state.batches:  # noqa: B020 - a field is the loop's variable, not the state
                state.next_step = state.step + 1
                state.outputs = state.loss = None
                on_batch(state)
                state.batch_id += 1
                if state.pass_stopped is not None or state.step >= limit:
                    break
        asked_to_end = state.stopped is not None or state.step >= limit
        state.pass_cut = asked_to_end and length_hint(state.batches, 1) > 0

    def on_batch(self, state: State) -> None:
        """Run as an item: wind and unwind the own rings, then let the outer onion go on."""
        self._work(state)

    def check(self, runner: Runner) -> None:
        """Refuse, as an item, an outer runner whose State lacks what the own items use."""
        if not issubclass(runner.state_class, self.state_class):
            wanted = self.state_class.__name__
            raise CompositionError(f"{self.name} needs the State {wanted}; give the outer Runner state={wanted} too.")

    # -- composing ----------------------------------------------------------------------------------------------------

    def _compose(self, without: Items = ()) -> None:
        """Compose the hooks of all items but some; those of nested runners are open in line with the others."""
        items = tuple(item for item in self.walk() if not item_tree.is_one_of(item, without))
        self._left_out = without
        self._initialize = [*own_state(items), *self._hooks(items, "initialize")]
        self._pass = self._hooks(items, "on_pass")
        self._batch = compose(self._hooks(self.items, "on_batch", without=without), _count)

    def _nested_ring(self, without: Items = ()) -> Ring:
        """Compose the batch ring of this runner as an item of another one."""
        return compose(self._hooks(self.items, "on_batch", owner=self.name, without=without), _nothing)

    def _hooks(self, items: Items, name: str, owner: str | None = None, without: Items = ()) -> list[Hook]:
        """Return the overridden hooks of items, the outermost first, with clocks between them if timing is on."""
        chosen = [item for item in items if overrides(item, name) and not item_tree.is_one_of(item, without)]
        hooks: list[Hook] = [
            item._nested_ring(without) if without and isinstance(item, Runner) else getattr(item, name)
            for item in chosen
        ]
        for hook in hooks:
            refuse_coroutine(hook)
        return self.clock.between(hooks, [item.name for item in chosen], name, owner) if self.clock else hooks

    # -- deriving -----------------------------------------------------------------------------------------------------

    def without(self, *which: Selector) -> Runner:
        """Return a new Runner that lacks the chosen items, at every depth; the others are shared."""
        for each in which:
            if each not in self:
                self._one(each)
        return self._rebuilt(lambda item: () if any(item_tree.matches(item, each) for each in which) else (item,))

    def replace(self, which: Selector, item: RunnerItem) -> Runner:
        """Return a new Runner with ``item`` in the place of the one that is chosen."""
        return self._put(which, lambda there: (item,))

    def insert_before(self, which: Selector, *items: RunnerItem) -> Runner:
        """Return a new Runner with ``items`` just outside the chosen one."""
        return self._put(which, lambda there: (*items, there))

    def insert_after(self, which: Selector, *items: RunnerItem) -> Runner:
        """Return a new Runner with ``items`` just inside the chosen one."""
        return self._put(which, lambda there: (there, *items))

    def timed(self) -> Runner:
        """Return a new Runner of the same items with a clock between each two rings, nested ones included."""
        clock = Timing()
        return self.with_items(item_tree.clocked(self.items, clock), clock)

    def _put(self, which: Selector, put: Callable[[RunnerItem], Items]) -> Runner:
        chosen = self._one(which)
        return self._rebuilt(lambda item: put(item) if item is chosen else (item,))

    def _rebuilt(self, put: Callable[[RunnerItem], Items]) -> Runner:
        return self.with_items(item_tree.rebuild(self.items, put), self.clock)

    def with_items(self, items: Items, clock: Timing | None = None) -> Runner:
        """Return a Runner of other items with this one's name, State class and clock.

        Args:
            items: the items.
            clock: the clock to put between each two rings. Default: that of this runner, if it has one.
        """
        own_name = self.name if item_tree.named(self) else None
        return Runner(*items, name=own_name, state=self.state_class, timing=clock or self.clock)

    def timing(self) -> Timing:
        """Return what each ring cost in the runs so far; print it, or write its Chrome trace.

        Raises:
            OnionError: timing is off.
        """
        if self.clock is None:
            raise OnionError("timing is off; run runner.timed() instead, then ask that runner for its timing().")
        return self.clock
