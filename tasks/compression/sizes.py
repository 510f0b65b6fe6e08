"""The sizes in which one network is trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from paddle import nn

from onion import RunnerItem
from onion.errors import CompositionError

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
