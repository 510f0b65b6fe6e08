"""What a network may rely on for its gradients.

Autograd keeps everything that a later differentiation could need. A network is faster if it knows that its loss is
differentiated only once; the caller declares this.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import local
from types import FrameType
from typing import Any, NoReturn

from onion.errors import OnionError


class _Once(local):
    """Counts the nested declarations of this thread; another thread may predict or train meanwhile."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1


once = _Once()
"""``with once:`` what is computed here is differentiated by one ``backward()``, which keeps and makes no graph."""


class _Many(local):
    """Suspends the declarations of this thread."""

    def __init__(self) -> None:
        self._before: list[int] = []

    def __enter__(self) -> None:
        self._before.append(once.depth)
        once.depth = 0

    def __exit__(self, *error: object) -> None:
        once.depth = self._before.pop()


many = _Many()
"""``with many:`` what is computed here may be differentiated any number of times, whatever the caller declared."""


def is_once() -> bool:
    """Return whether what is computed now is differentiated once."""
    return once.depth > 0


class _Explained:
    """Keeps why a backward pass was refused: Paddle replaces the error that a hook raises by another one."""

    def __init__(self) -> None:
        self.why: str | None = None

    def __enter__(self) -> None:
        self.why = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        why, self.why = self.why, None
        if why is not None and isinstance(error, Exception) and not isinstance(error, OnionError):
            raise OnionError(why) from error


explained = _Explained()
"""``with explained:`` a backward pass that is refused ends with the reason, whatever Paddle raises instead."""


def refuse(why: str) -> NoReturn:
    """Refuse a backward pass.

    Raises:
        OnionError: always, with the reason.
    """
    explained.why = why
    raise OnionError(why)


REMEDY = "compute the batch in `with onion.engine.backward.many:`, which uses the plain layers."


def running_call(frame: FrameType | None) -> Mapping[str, Any]:
    """Return the arguments of Paddle's function that runs the backward pass in which ``frame`` is called."""
    while frame is not None and "retain_graph" not in frame.f_locals:
        frame = frame.f_back
    return {} if frame is None else frame.f_locals


def refuse_more(call: Mapping[str, Any], which: str) -> None:
    """Refuse a backward pass whose graph is kept for another one, which would end the process.

    Args:
        call: the arguments of the pass, see :func:`running_call`.
        which: the layers that support one pass only, for the message.

    Raises:
        OnionError: ``retain_graph`` or ``create_graph`` is set.
    """
    for name in ("retain_graph", "create_graph"):
        if call.get(name):
            refuse(f"{name}=True is not supported by {which}; {REMEDY}")
