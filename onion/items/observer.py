"""Plain functions at the six moments of the 2016 proposal, for those who want no class."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError
from onion.validation import is_lazy

Call: TypeAlias = Callable[[State], object]


class Observer(RunnerItem):
    """Call functions of the state at chosen moments; what they return is ignored.

        Observer(on_batch_end=lambda state: print(state.step, float(state.loss)))

    An end is not called when an error passes, except ``finalize``, which always is once the run was entered.

    Args:
        initialize: before the run.
        finalize: after it, also after an error.
        on_pass_begin: before each pass.
        on_pass_end: after each pass.
        on_batch_begin: before each batch.
        on_batch_end: after each batch.

    Raises:
        CompositionError: a function is a coroutine or generator function.
    """

    passive = True

    def __init__(
        self,
        *,
        initialize: Call | None = None,
        finalize: Call | None = None,
        on_pass_begin: Call | None = None,
        on_pass_end: Call | None = None,
        on_batch_begin: Call | None = None,
        on_batch_end: Call | None = None,
    ) -> None:
        _refuse_lazy(initialize, finalize, on_pass_begin, on_pass_end, on_batch_begin, on_batch_end)
        # Hooks are put on the instance only where there is something to call, so that the others cost nothing.
        if initialize or finalize:
            self.initialize = _around_run(initialize, finalize)  # type: ignore[assignment, method-assign]
        if on_pass_begin or on_pass_end:
            self.on_pass = _around(on_pass_begin, on_pass_end)  # type: ignore[assignment, method-assign]
        if on_batch_begin or on_batch_end:
            self.on_batch = _around(on_batch_begin, on_batch_end)  # type: ignore[assignment, method-assign]


def _refuse_lazy(*calls: Call | None) -> None:
    """Raise CompositionError for a function whose body would not run when it is called."""
    for call in calls:
        if is_lazy(call):
            raise CompositionError(
                f"Observer: {call!r} is a coroutine or generator function, whose body a call does not run; "
                "pass a plain function, or write a RunnerItem, whose hooks may yield."
            )


def _around(begin: Call | None, end: Call | None) -> Callable[[State], HookIterator | None]:
    if end is None and begin is not None:
        call = begin

        def before(state: State) -> None:
            call(state)

        return before

    def around(state: State) -> HookIterator:
        if begin is not None:
            begin(state)
        yield
        if end is not None:
            end(state)

    return around


def _around_run(begin: Call | None, end: Call | None) -> Callable[[State], HookIterator | None]:
    def around(state: State) -> HookIterator:
        if begin is not None:
            begin(state)
        try:
            yield
        finally:
            if end is not None:
                end(state)

    return around
