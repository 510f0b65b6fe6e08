"""How hooks become rings: the composing core.

A ring is a function of the state that runs its hook around what is inside. Batch rings are closures, composed once;
the rings of a scope (a run, a pass) are held open on a stack, so that a ``with`` block can be inside them too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

from onion.engine.state import State
from onion.errors import CompositionError, HookError

Hook: TypeAlias = Callable[[State], Any]
Ring: TypeAlias = Callable[[State], None]
Waiting: TypeAlias = Generator[None, None, None]
"""A generator hook that was entered and waits at its ``yield``."""


def title(hook: Hook) -> str:
    """Name a hook for an error: the item's name and class, and the hook."""
    item = getattr(hook, "__self__", None)
    if item is None:
        return getattr(hook, "__qualname__", repr(hook))
    return f"{item.name} ({type(item).__name__}).{hook.__name__}"


def refuse_coroutine(hook: Hook) -> None:
    """Raise CompositionError for ``async`` hooks: nothing would ever await them."""
    if inspect.iscoroutinefunction(hook) or inspect.isasyncgenfunction(hook):
        raise CompositionError(
            f"{title(hook)} is a coroutine; hooks are plain functions or generators: drop the 'async'."
        )


def compose(hooks: Sequence[Hook], center: Ring) -> Ring:
    """Compose batch hooks, the outermost first, around ``center``. The result costs one call a ring."""
    for hook in reversed(hooks):
        center = _around(hook, center) if inspect.isgeneratorfunction(hook) else _before(hook, center)
    return center


def _before(hook: Hook, inside: Ring) -> Ring:
    """Return the ring of a plain hook: it runs on the way in and has no way out."""

    def ring(state: State) -> None:
        if (answer := hook(state)) is not None:
            raise _returned(hook, answer)
        inside(state)

    return ring


def _around(hook: Hook, inside: Ring) -> Ring:
    """Return the ring of a generator hook: every yield runs the inside once."""

    def ring(state: State) -> None:
        waiting = hook(state)
        for _ in waiting:
            again = True
            while again:
                try:
                    inside(state)
                    again = False
                except BaseException as error:
                    again = _throw(waiting, error)
                # A retry runs out here, where the error is gone and with it all that the failed try held (its memory).

    return ring


def _throw(waiting: Waiting, error: BaseException) -> bool:
    """Raise an error at a ring's yield. True: it yielded again. False: it swallowed the error and left."""
    try:
        try:
            waiting.throw(error)
        except StopIteration:
            return False
        except RuntimeError as wrapped:
            # Python turns a StopIteration that leaves a generator into a RuntimeError; here the ring only passed it on.
            if not (isinstance(error, StopIteration) and wrapped.__cause__ is error):
                raise
        else:
            return True
        raise error
    finally:
        del error  # or the error and this frame, which is in its traceback, would hold each other


def hold(hooks: Sequence[Hook], inside: Ring, state: State) -> None:
    """Run ``inside`` within the rings of a scope. Where a ring swallows an error, the rest is skipped."""
    with ExitStack() as rings:
        enter(hooks, state, rings)
        inside(state)


def enter(hooks: Sequence[Hook], state: State, rings: ExitStack) -> None:
    """Enter the rings of a scope one by one; closing ``rings`` leaves those that were entered, innermost first."""
    for hook in hooks:
        answer = hook(state)
        if inspect.isgeneratorfunction(hook):
            rings.enter_context(_held_open(hook, answer))
        elif answer is not None:
            raise _returned(hook, answer)


@contextmanager
def _held_open(hook: Hook, waiting: Waiting) -> Iterator[None]:
    """Hold one ring of a scope open at its only yield."""
    if _left(waiting):
        raise HookError(f"{title(hook)} ended without a yield; in this hook it must yield exactly once.")
    try:
        yield
    except BaseException as error:
        if _throw(waiting, error):
            raise _second_yield(hook, waiting) from error
    else:
        if not _left(waiting):
            raise _second_yield(hook, waiting)


def _left(waiting: Waiting) -> bool:
    """Resume a ring; tell whether it ran to its end rather than to a yield."""
    return next(waiting, waiting) is waiting


def _second_yield(hook: Hook, waiting: Waiting) -> HookError:
    waiting.close()
    return HookError(f"{title(hook)} yielded a second time; only on_batch may run its inside more than once.")


def _returned(hook: Hook, answer: object) -> HookError:
    if inspect.isgenerator(answer):
        return HookError(
            f"{title(hook)} returned a generator that would never run; write 'yield from ...' in it, "
            "so that it is a generator function itself."
        )
    return HookError(
        f"{title(hook)} returned {type(answer).__name__}; a hook returns nothing: put results on the state."
    )
