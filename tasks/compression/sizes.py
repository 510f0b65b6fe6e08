"""The sizes in which one network is trained: which there are, and what the inside of an item leaves of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from paddle import nn

from onion import RunnerItem, State
from onion.errors import CompositionError
from onion.training.microbatches import loss_sum

Size = TypeVar("Size", int, float)


def checked_sizes(
    item: RunnerItem, sizes: Sequence[Size], is_size: Callable[[Any], bool], networks: Sequence[nn.Layer]
) -> list[Size]:
    """Return the sizes of an item, the largest first.

    Raises:
        CompositionError: there are none, one is no number or there twice, or there is no network.
    """
    several = isinstance(sizes, list | tuple) and bool(sizes)
    if not several or not all(map(is_size, sizes)) or len(set(sizes)) < len(sizes) or not networks:
        name = type(item).__name__
        raise CompositionError(
            f"{name} needs a list of different numbers, and a network, got {sizes!r} and {len(networks)} networks: "
            f"{name}([...], network)"
        )
    return sorted(sizes, reverse=True)


def losses_added_up(state: State, sizes: Sequence[Size]) -> Iterator[Size]:
    """Yield each size, in which the inside runs once, and leave the sum of their losses as the loss of the batch.

    Their gradients are added up too. One that is not finite makes the sum so, for a NanGuard to see.
    """
    before, total = state.loss, None
    for size in sizes:
        state.loss = None
        yield size
        total = loss_sum(total, state.loss)
    state.loss = before if total is None else total
