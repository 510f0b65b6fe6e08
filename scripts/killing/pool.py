"""A function applied in several processes, whose results come in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_work: Callable[[Any], Any]


def side_by_side(work: Callable[[T], R], things: Iterable[T], jobs: int) -> Iterator[R]:
    """Apply a function to each thing, in that many processes, which are forked here and know all that we know."""
    # No Pool: its processes may have no processes of their own, as a DataLoader has.
    with ProcessPoolExecutor(jobs, get_context("fork"), initializer=_take, initargs=(work,)) as pool:
        yield from pool.map(_do, things)


def _take(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work


def _do(thing: Any) -> Any:
    return _work(thing)
