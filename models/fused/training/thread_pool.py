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
os.register_at_fork(after_in_child=_pools.clear)  # the threads stay with the parent


def at_once(function: Callable[[Argument], Result], arguments: Sequence[Argument]) -> list[Result]:
    """Return what a function makes of each argument; the first one is this thread's.

    Nothing is recorded for autograd. Meanwhile the products share the threads there are; afterwards they have as many
    as before. Where there is one thread, it takes one argument after the other.

    Raises:
        Exception: what the function raised, the first argument's first; those that had begun have ended by then.
    """
    threads = device.threads()
    if threads == 1 or len(arguments) == 1:
        return [_without_grad(function, each) for each in arguments]
    share = max(1, threads // len(arguments))
    device.use_threads(share)
    try:
        pool = _pool(len(arguments) - 1)
        others = [pool.submit(_with_threads, share, function, each) for each in arguments[1:]]
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


def _with_threads(count: int, function: Callable[[Any], Result], argument: Any) -> Result:
    device.use_threads(count)  # OpenMP counts for every thread that starts others
    return _without_grad(function, argument)


def _pool(workers: int) -> ThreadPoolExecutor:
    if workers not in _pools:
        _pools[workers] = ThreadPoolExecutor(workers, "encoder", initializer=_leave_signals)
    return _pools[workers]


def _leave_signals() -> None:
    """Leave signals to the main thread, whose order of them would be a race otherwise."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
