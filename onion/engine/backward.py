"""What a network may rely on for its gradients.

Autograd keeps all that any later question could need. A network that knows that its loss is differentiated once can be
faster; who calls it says so.
"""

from __future__ import annotations

from threading import local
from typing import NoReturn

from onion.errors import OnionError


class _Once(local):
    """Counts how many callers of this thread have said it: another one may predict, or train, meanwhile."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1


once = _Once()
"""``with once:`` what is computed here has one way back: one ``backward()`` that keeps no graph, and makes none."""


class _Many(local):
    """Takes back for a while what was said."""

    def __init__(self) -> None:
        self._before: list[int] = []

    def __enter__(self) -> None:
        self._before.append(once.depth)
        once.depth = 0

    def __exit__(self, *error: object) -> None:
        once.depth = self._before.pop()


many = _Many()
"""``with many:`` what is computed here may be gone back through as often as one likes, whoever has called."""


def is_once() -> bool:
    """Tell whether what is computed now has one way back."""
    return once.depth > 0


class _Explained:
    """Keeps why the way back was refused: Paddle puts an error of its own in the place of what a hook raises."""

    def __init__(self) -> None:
        self.why: str | None = None

    def __enter__(self) -> None:
        self.why = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        why, self.why = self.why, None
        if why is not None and isinstance(error, Exception) and not isinstance(error, OnionError):
            raise OnionError(why) from error


explained = _Explained()
"""``with explained:`` a way back that is refused ends with the reason, whatever Paddle makes of it."""


def refuse(why: str) -> NoReturn:
    """Refuse to go back.

    Raises:
        OnionError: always; it says why.
    """
    explained.why = why
    raise OnionError(why)
