"""The contract of a ring: three hooks, a name, a state to save, a place to insist on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from onion.engine.placement import Rule
    from onion.engine.runner import Runner
    from onion.engine.state import State

HookIterator: TypeAlias = Iterator[None]
"""What a hook with a way out returns: it is a generator function (way in, ``yield``, way out). A hook that is a plain
function runs on the way in only, and returns None."""

HOOKS = ("initialize", "on_pass", "on_batch")
"""The names of the hooks, the outermost scope first."""


class RunnerItem:
    """One ring of the onion. Override the hooks that matter; a hook left alone costs nothing.

    In every hook the code before ``yield`` is the way in, the code after it the way out, and the ``yield`` is where the
    rings inside run. An error raised inside appears at the ``yield``. Subclasses need not call ``super().__init__()``.

        class Announce(RunnerItem):
            def on_pass(self, state):
                print("pass", state.pass_id)
                yield  # the rings inside
                print("done after", state.step, "steps")
    """

    name: str = "runner_item"
    """Its name in drawings, metrics and checkpoints: the class's in snake case, unless a class or an instance sets one.
    Of several items with the same default name in one onion the later ones are numbered: ``tester``, ``tester-2``. An
    item that several onions share has one name in all of them: set it where their numbers would differ."""

    keep_for_inference: bool = True
    """Whether the item stays where an onion that trains is made into one that predicts (``inference_runner``)."""

    passive: bool = False
    """Whether the item only watches: a run that goes on from a checkpoint may lack it, or have another one like it."""

    transient: tuple[str, ...] = ()
    """Attributes, and keys of ``state_dict``, that may be others in a resumed run than in one that was not cut, without
    consequence; ``onion.testing.assert_resumes_exactly`` passes over them. A subclass adds its own to its parent's."""

    place_rules: tuple[Rule, ...] = ()
    """What the item asks of its place in the onion (``onion.engine.placement``), besides what ``check`` looks for. A
    subclass that gives its own repeats its parent's."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Give the class its default name."""
        super().__init_subclass__(**options)
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()

    def initialize(self, state: State) -> HookIterator | None:
        """Surround the whole run. As a generator it yields exactly once."""

    def on_pass(self, state: State) -> HookIterator | None:
        """Surround one pass over the data. As a generator it yields exactly once."""

    def on_batch(self, state: State) -> HookIterator | None:
        """Surround one batch. Every ``yield`` runs the inside once: none skips it, two run it twice."""

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs, as a flat dict of numpy or Paddle arrays and JSON scalars."""
        return {}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take back what ``state_dict`` gave. It is called before ``initialize``, which must keep what was loaded."""

    def identity(self) -> Mapping[str, Any]:
        """Return what has to be the same in a run that goes on from a checkpoint.

        Default: the constructor's arguments that the item keeps as attributes of their names; of an object its class
        and arguments, of an array its dtype and shape.
        """
        from onion.engine.identity import constructed

        return constructed(self)

    def check(self, runner: Runner) -> None:
        """Raise CompositionError if this item cannot work where it stands in ``runner``; called when that is built."""

    def log_values(self) -> Mapping[str, float]:
        """Return figures worth a look (a learning rate, a count); asked for only when somebody prints or logs."""
        return {}


def overrides(item: RunnerItem, method: str) -> bool:
    """Tell whether an item, its class or its instance, has a method of its own in place of RunnerItem's."""
    return getattr(getattr(item, method), "__func__", None) is not getattr(RunnerItem, method)


def transient_of(item: object) -> set[str]:
    """Return what an item, or what it holds, and its parents say may be otherwise in a resumed run."""
    return {name for kind in type(item).__mro__ for name in vars(kind).get("transient", ())}
