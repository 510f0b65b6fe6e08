"""The parts of a batch: rows and dropout masks, a thread for each part, and the gradients that each collects."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import attrs
import numpy as np
import paddle

from onion import device
from onion.models import ops
from onion.models.packing import Packing

FEWEST = 64
"""Minimum number of tokens of a part."""

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_pools: dict[int, ThreadPoolExecutor] = {}
os.register_at_fork(after_in_child=_pools.clear)  # threads do not survive a fork


@attrs.frozen(eq=False)
class Part:
    """Consecutive rows of a batch.

    Attributes:
        packing: of these rows, without columns that are empty in all of them.
        start: index of their first token in the packed batch.
        stop: index behind their last token.
        first: index of the first row.
        random: the generator of their masks; None: no dropout.
    """

    packing: Packing
    start: int
    stop: int
    first: int
    random: np.random.Generator | None

    def of_outputs(self, firsts_only: bool) -> slice:
        """Return the slice of its vectors in the output of the layers: one per token, or one per row."""
        return slice(self.first, self.first + self.packing.batch) if firsts_only else slice(self.start, self.stop)

    @property
    def random_state(self) -> Mapping[str, Any] | None:
        """The state of the generator of the masks; None: no dropout."""
        return None if self.random is None else self.random.bit_generator.state

    def rewind(self, state: Mapping[str, Any] | None) -> None:
        """Draw the masks again that were drawn from a state on."""
        if self.random is not None and state is not None:
            self.random.bit_generator.state = state

    def mask(self, shape: list[int], probability: float) -> paddle.Tensor | None:
        """Draw a dropout mask of zeros and the scale; None: no dropout."""
        if self.random is None or probability == 0:
            return None
        return ops.as_tensor(ops.mask(self.random, shape, probability))


def masked(x: paddle.Tensor, mask: paddle.Tensor | None) -> paddle.Tensor:
    """Apply a dropout mask in place."""
    return x if mask is None else x.multiply_(mask)


def split(packing: Packing, count: int, seed: int | None) -> list[Part]:
    """Split a batch into at most ``count`` parts of similar size; ``seed`` is that of the masks, None: no dropout."""
    count = max(1, min(count, packing.batch, packing.tokens // FEWEST))
    return list(_cut(packing, count, seed))


def _cut(packing: Packing, count: int, seed: int | None) -> Iterator[Part]:
    ends = np.concatenate([[0], np.cumsum(packing.mask.sum(axis=1))])
    wished = ends[-1] * np.arange(count + 1) / count
    borders = np.unique([np.abs(ends - wish).argmin() for wish in wished])
    for number, (first, last) in enumerate(pairwise(borders)):
        random = None if seed is None else np.random.Generator(np.random.SFC64([seed, number]))
        yield Part(packing.between(first, last), int(ends[first]), int(ends[last]), int(first), random)


def at_once(function: Callable[[Argument], Result], arguments: Sequence[Argument]) -> list[Result]:
    """Apply a function to all arguments in parallel, the first one in this thread, and return the results.

    Autograd records nothing. The threads of the math library are divided among the calls and restored afterwards. With
    one thread, the calls are sequential.

    Raises:
        Exception: what the function raised, for the first argument that failed, once all calls have ended.
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
    with paddle.no_grad():  # a setting of the thread
        return function(argument)


def _with_threads(count: int, function: Callable[[Any], Result], argument: Any) -> Result:
    device.use_threads(count)  # OpenMP's setting belongs to the thread
    return _without_grad(function, argument)


def _pool(workers: int) -> ThreadPoolExecutor:
    if workers not in _pools:
        _pools[workers] = ThreadPoolExecutor(workers, "encoder", initializer=_leave_signals)
    return _pools[workers]


def _leave_signals() -> None:
    """Block signals, so that the main thread handles them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


class Gradients:
    """The sums of the gradients of parameters."""

    def __init__(self) -> None:
        self._sums: dict[str, paddle.Tensor] = {}

    def put(self, parameter: paddle.Tensor, gradient: paddle.Tensor) -> None:
        """Add to a parameter's gradient; the tensor is taken over and may be changed."""
        known = self._sums.get(parameter.name)
        self._sums[parameter.name] = gradient if known is None else known.add_(gradient)

    def of(self, parameter: paddle.Tensor) -> paddle.Tensor | None:
        """Return a parameter's gradient; None if it is frozen."""
        return self._sums.get(parameter.name)

    def take(self, others: Sequence[Gradients], parameters: Sequence[paddle.Tensor]) -> None:
        """Add the gradients that others have of these parameters."""
        for parameter in parameters:
            for other in others:
                gradient = other.of(parameter)
                if gradient is not None:
                    self.put(parameter, gradient)
