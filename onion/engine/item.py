"""The contract of an item: three hooks, a state, what others may ask of it, and what it asks of its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from onion.distributed.group import Group
    from onion.engine.placement import Rule
    from onion.engine.runner import Runner
    from onion.engine.state import State
    from onion.training.adjustable import Adjustable

HookIterator: TypeAlias = Iterator[None]
"""What a hook with a way out returns: it is a generator function (way in, ``yield``, way out). A hook that is a plain
function runs on the way in only, and returns None."""

HOOKS = ("initialize", "on_pass", "on_batch")
"""The names of the hooks, the outermost scope first."""


class RunnerItem:
    """One ring of the onion. Override what matters; a hook or method left alone costs nothing.

    In every hook the code before ``yield`` is the way in, the code after it the way out, and the ``yield`` is where the
    rings inside run. An error raised inside appears at the ``yield``. Subclasses need not call ``super().__init__()``.

        class Announce(RunnerItem):
            def on_pass(self, state):
                print("pass", state.pass_id)
                yield  # the rings inside
                print("done after", state.step, "steps")

    An item with a state says what a run begins with (``reset``) and what a checkpoint holds (``state_dict``,
    ``load_state_dict``). The engine does the rest: every run begins with ``reset``, a resumed run then loads, and a run
    inside another one that shares the item has a separate state.

        class Examples(RunnerItem):
            def reset(self):
                self.seen = 0

            def on_batch(self, state):
                yield
                self.seen += len(state.batch["x"])

            def state_dict(self):
                return {"seen": self.seen}

            def load_state_dict(self, saved):
                self.seen = saved["seen"]
    """

    name: str = "runner_item"
    """Its name in drawings, metrics and checkpoints: the class's in snake case, unless a class or an instance sets one.
    Of several items with the same default name in one onion the later ones are numbered: ``tester``, ``tester-2``. An
    item that several onions share has one name in all of them: set it where their numbers would differ."""

    # -- what an item does, as other items and the engine ask for it ---------------------------------------------------

    provides_data: bool = False
    """Whether the item puts the batches of a pass on the state (``state.batches``)."""

    mixes_batches: bool = False
    """Whether it adds samples of earlier batches to a batch."""

    alters_batches: bool = False
    """Whether it puts another batch, made of the one under way alone, in its place; so it may work on pieces of it."""

    computes_gradients: bool = False
    """Whether it runs a network forward and backward. Its ``network`` is what it trains."""

    runs_network: bool = False
    """Whether it runs a network forward only, and so is a place where outputs come from."""

    moves_weights: bool = False
    """Whether it changes parameters on its way out of a batch."""

    runs_again: bool = False
    """Whether it may run the inside more than once a batch."""

    splits_update: bool = False
    """Whether it makes one update of several batches or parts of one, each with its share (``state.share``)."""

    reports: bool = False
    """Whether it reports metrics on its way out."""

    network: Any = None
    """The network that the item runs or works on, a ``paddle.nn.Layer``; None: none, or none that others may know."""

    optimizer: Any = None
    """The optimizer that the item steps; None: none."""

    frozen: Sequence[Any] = ()
    """The parameters that do not learn from what is inside the item, as long as the run lasts."""

    runs_a_step: int | Fraction = 1
    """How often the item runs, in a step, what it goes around. Unlike 1 it changes how many updates a run makes."""

    extra_batches: int = 0
    """How many batches the item takes from the data in a step, besides the first."""

    is_runner: bool = False
    """Whether it holds items (``items``, ``everyone``, ``with_items``) that count as items of the onion, as Runner and
    Every do."""

    lends_its_place: bool = False
    """Whether the items that it holds run around what is inside it, as that of Every does."""

    @property
    def batches_per_pass(self) -> int | None:
        """How many batches a pass has, of an item that brings data; None: unknown, as of a stream."""
        return None

    def batches_in(self, pass_id: int) -> int | None:
        """Return how many batches a certain pass has, counted from 0, where passes differ; None: unknown."""
        return self.batches_per_pass

    # -- where several processes run the same onion (onion.distributed) ------------------------------------------------

    group: Group | None = None
    """The processes that run the onion together, set for the time of a run; None: this process alone."""

    joins_group: bool = False
    """Whether it makes processes run the onion together."""

    first_rank_only: bool = False
    """Whether only the first of several processes runs the item, which watches what is the same in all of them; so it
    has to be ``passive``."""

    alone_because: str = ""
    """Why the item cannot be run by several processes, after its name and "cannot be run by several processes:"."""

    # -- how the engine treats it --------------------------------------------------------------------------------------

    outermost_only: bool = False
    """Whether only the outermost of the runs that share the item has it: a run inside that one, such as a test made of
    the training's rings, behaves as if the item were not there."""

    keep_for_inference: bool = True
    """Whether the item stays where an onion that trains is made into one that predicts (``inference_runner``)."""

    passive: bool = False
    """Whether the item only watches: a run that goes on from a checkpoint may lack it, or have another one like it."""

    grows: tuple[str, ...] = ()
    """Parts of its identity, by name, of which a run that is extended (``Saver(extends=True)``) may have more entries
    than the saved one."""

    may_join: bool = False
    """Whether a run that is extended may have the item though the saved one lacked it."""

    transient: tuple[str, ...] = ()
    """Attributes, and keys of ``state_dict``, that may be others in a resumed run than in one that was not cut, without
    consequence; ``onion.testing.assert_resumes_exactly`` passes over them. A subclass adds its own to its parent's."""

    place_rules: tuple[Rule, ...] = ()
    """What the item asks of its place in the onion (``onion.engine.placement``), besides what ``check`` looks for. A
    subclass that gives its own repeats its parent's."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Give the class its default name; let the engine know of every state that is loaded."""
        super().__init_subclass__(**options)
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()
        load = cls.load_state_dict
        if load is not RunnerItem.load_state_dict and not hasattr(load, "is_noted"):
            cls.load_state_dict = _noted(load)  # type: ignore[assignment]

    # -- the hooks -----------------------------------------------------------------------------------------------------

    def initialize(self, state: State) -> HookIterator | None:
        """Surround the whole run. As a generator it yields exactly once."""

    def on_pass(self, state: State) -> HookIterator | None:
        """Surround one pass over the data. As a generator it yields exactly once."""

    def on_batch(self, state: State) -> HookIterator | None:
        """Surround one batch. Every ``yield`` runs the inside once: none skips it, two run it twice."""

    # -- its state -----------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Set every attribute that a run changes to what a run begins with.

        The engine calls it at the start of every run, before any ``initialize``; a state for the run, from a Saver or
        loaded by hand before ``run``, is loaded after it. A run inside another one that shares the item resets it too;
        when that run has ended, all attributes of the item have the values of the outer run again. So assign new
        objects (``self.seen = []``), and do not clear existing ones. Call it in the constructor where the attributes
        are read before the first run.
        """

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs, as a flat dict of numpy or Paddle arrays and JSON scalars."""
        return {}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore what ``state_dict`` returned. It is called after ``reset`` and before ``initialize``."""

    def extended(self, saved: Mapping[str, Any], tasks: Sequence[str]) -> Mapping[str, Any]:
        """Return a state that a run without some tasks saved, with what these begin with; see ``Saver(extends=True)``.

        It is called after ``reset`` and before ``load_state_dict``, which gets what it returns.
        """
        return saved

    def identity(self) -> Mapping[str, Any]:
        """Return what has to be the same in a run that goes on from a checkpoint; override it to say otherwise.

        Default: ``onion.engine.identity.constructed(self)``, the constructor's arguments that the item keeps as
        attributes of their names; of an object its class and arguments, of an array its dtype and shape.
        """
        raise NotImplementedError("the default identity of an item is onion.engine.identity.constructed(item).")

    # -- what it is asked ----------------------------------------------------------------------------------------------

    def check(self, runner: Runner) -> None:
        """Raise CompositionError if this item cannot work at its place in ``runner``; called when that is built."""

    def log_values(self) -> Mapping[str, float]:
        """Return figures to show (a learning rate, a count); called only to print or log them."""
        return {}

    def adjustable(self) -> Mapping[str, Adjustable]:
        """Return the settings that may be changed during a run, by name, such as ``learning_rate``."""
        return {}

    def manual_settings(self) -> Mapping[str, float]:
        """Return the settings that were changed by hand, by name; they are part of ``state_dict``.

        A run that ends with others than its newest checkpoint has is saved once more, also if no step was made since.
        """
        return {}

    def wake(self, state: State) -> None:
        """End the wait for the next batch of a run, of an item that brings data; called by a signal's handler."""

    def on_checkpoints_pruned(self, steps: Sequence[int]) -> None:
        """Release what is kept outside the checkpoints for steps that a run can no longer resume from.

        It is called in the thread of the run after a checkpoint was written. ``state_dict`` was called when
        ``state.step`` was such a step, or ``load_state_dict`` with what it had given; of checkpoints older than that
        the item knows nothing.

        Args:
            steps: of the checkpoints that there are now; the best one is not counted.
        """


def overrides(item: RunnerItem, method: str) -> bool:
    """Tell whether an item, its class or its instance, has a method of its own in place of RunnerItem's."""
    return getattr(getattr(item, method), "__func__", None) is not getattr(RunnerItem, method)


def transient_of(item: object) -> set[str]:
    """Return what an item, or what it holds, and its parents say may be otherwise in a resumed run."""
    return {name for kind in type(item).__mro__ for name in vars(kind).get("transient", ())}


RUN, LOADED = "_run_that_has_it", "_state_for_the_next_run"
"""Attributes that the engine gives an item: the run that has it, and the state that was loaded while none had it."""


def is_in_use(item: RunnerItem) -> bool:
    """Return whether a run has the item now; one that an interrupt ended before it cleared the mark does not count."""
    run: State | None = vars(item).get(RUN)
    return run is not None and run.runner is not None and run.runner.current_run is run


Load: TypeAlias = Callable[[Any, Mapping[str, Any]], None]


def _noted(load: Load) -> Load:
    """Return a ``load_state_dict`` that keeps what it loads while no run has the item: the next run resets it first."""

    @wraps(load)
    def load_state_dict(self: RunnerItem, saved: Mapping[str, Any]) -> None:
        load(self, saved)
        if overrides(self, "reset") and not is_in_use(self):
            vars(self)[LOADED] = saved

    load_state_dict.is_noted = True  # type: ignore[attr-defined]
    return load_state_dict
