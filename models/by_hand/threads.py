"""A function on every part of a batch at once, a thread each."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import paddle

from onion import device

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_pools: dict[int, ThreadPoolExecutor] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # the threads stay with the parent


def at_once(function: Callable[[Argument], Result], arguments: Sequence[Argument]) -> list[Result]:
    """Return what a function makes of each argument; the first one is this thread's.

    Nothing is recorded for autograd. Meanwhile products use one thread each; afterwards as many as before.

    Raises:
        Exception: what the function raised, the first argument's first; all calls have ended by then.
    """
    if len(arguments) == 1:
        with paddle.no_grad():
            return [function(arguments[0])]
    threads = device.threads()
    device.use_threads(1)
    try:
        others = [_pool(len(arguments) - 1).submit(_without_grad, function, each) for each in arguments[1:]]
        try:
            first = _without_grad(function, arguments[0])
        finally:
            for other in others:
                other.exception()  # waits
        return [first, *(other.result() for other in others)]
    finally:
        device.use_threads(threads)


def _without_grad(function: Callable[[Any], Result], argument: Any) -> Result:
    with paddle.no_grad():  # a thread's own
        return function(argument)


def _pool(workers: int) -> ThreadPoolExecutor:
    if workers not in _pools:
        _pools[workers] = ThreadPoolExecutor(workers, "encoder", initializer=_begin)
    return _pools[workers]


def _begin() -> None:
    """Leave signals to the main thread, whose order of them would be a race otherwise, and products to one thread."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    device.use_threads(1)
