"""Sums of tensors over ranks: in the order that is fast, or as a tree with the same bits for any number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from onion.device import paddle

BUCKET = 25 << 20
"""Bytes that are summed at the same time, as torch's and Paddle's DataParallel do."""

HALVED = 4096
"""Values of which two ranks add one half each; fewer are sent whole, in half as many messages."""


def buckets(tensors: Sequence[Any]) -> Iterator[list[Any]]:
    """Give tensors in groups of one dtype and of about BUCKET bytes, in their order."""
    group: list[Any] = []
    size = 0
    for tensor in tensors:
        if group and (size + _bytes(tensor) > BUCKET or tensor.dtype != group[0].dtype):
            yield group
            group, size = [], 0
        group.append(tensor)
        size += _bytes(tensor)
    if group:
        yield group


def _bytes(tensor: Any) -> int:
    return int(tensor.size) * int(tensor.element_size())


def flat(tensors: Sequence[Any]) -> Any:
    """Return all values in one tensor with one dimension; a single tensor is not copied."""
    flattened = [tensor.reshape([-1]) for tensor in tensors]
    return paddle().concat(flattened) if len(flattened) > 1 else flattened[0]


def parts(tensor: Any, like: Sequence[Any]) -> list[Any]:
    """Cut a flat tensor into tensors of these shapes."""
    cut = paddle().split(tensor, [each.size for each in like]) if len(like) > 1 else [tensor]
    return [part.reshape(each.shape) for part, each in zip(cut, like, strict=True)]


def all_reduced(tensors: Sequence[Any]) -> list[Any]:
    """Return the sums over all ranks; the tensors may be changed."""
    summed: list[Any] = []
    for group in buckets(tensors):
        whole = flat(group)
        paddle().distributed.all_reduce(whole)
        summed += parts(whole, group)
    return summed


class RunningSum:
    """The sum of lists of tensors, one a piece, in the order that is fast: one after another, then ranks."""

    def __init__(self) -> None:
        self._sum: list[Any] = []

    def add(self, piece: list[Any]) -> None:
        """Add the next piece, whose tensors may be changed."""
        self._sum = [a.add_(b) for a, b in zip(self._sum, piece, strict=True)] if self._sum else piece

    def result(self, rank: int, world_size: int) -> list[Any]:
        """Return the sum over all ranks."""
        return all_reduced(self._sum) if world_size > 1 else self._sum


class TreeSum:
    """The sum of lists of tensors, one a piece, as a tree: neighbours, then neighbours of those.

    Each rank adds the pieces that it has, a power of two in a row, and so a branch of the tree; then the branches are
    added between ranks that are ever further apart (``tree_reduced``). So the additions are the same for any number of
    ranks.
    """

    def __init__(self) -> None:
        self._branches: list[tuple[int, list[Any]]] = []

    def add(self, piece: list[Any]) -> None:
        """Add the next piece."""
        height, branch = 0, piece
        while self._branches and self._branches[-1][0] == height:
            _, left = self._branches.pop()
            branch = [a + b for a, b in zip(left, branch, strict=True)]
            height += 1
        self._branches.append((height, branch))

    def result(self, rank: int, world_size: int) -> list[Any]:
        """Return the sum over all ranks."""
        ((_, own),) = self._branches
        if world_size == 1:
            return own
        return [each for group in buckets(own) for each in parts(tree_reduced(flat(group), rank, world_size), group)]


def tree_reduced(tensor: Any, rank: int, world_size: int, distance: int = 1) -> Any:
    """Return the sum over all ranks, neighbours first.

    Of two ranks each adds one half, for both: a rank sends no more than 2 (n - 1) / n times the tensor, as in a ring,
    and not log2(n) times (Rabenseifner 2004, "Optimization of Collective Reduction Operations"). The bits are those of
    adding it whole.

    Args:
        tensor: of this rank, ``[values]``.
        rank: this one.
        world_size: a power of two.
        distance: of the rank to add to first.
    """
    if distance == world_size:
        return tensor
    other = rank ^ distance
    if tensor.size < HALVED:
        return tree_reduced(tensor + _swapped(tensor, tensor, rank, other), rank, world_size, 2 * distance)
    halves = [tensor[: tensor.size // 2], tensor[tensor.size // 2 :]]
    own, theirs = halves if rank < other else halves[::-1]
    summed = tree_reduced(own + _swapped(theirs, own, rank, other), rank, world_size, 2 * distance)
    both = [summed, _swapped(summed, theirs, rank, other)]
    return paddle().concat(both if rank < other else both[::-1])


def _swapped(given: Any, like: Any, rank: int, other: int) -> Any:
    """Give another rank a tensor; return the one that it gives, of the shape of ``like``."""
    taken = paddle().empty_like(like)
    send: Callable[..., Any] = paddle().distributed.send
    receive: Callable[..., Any] = paddle().distributed.recv
    if rank < other:
        send(given, other)
        receive(taken, other)
    else:
        receive(taken, other)
        send(given, other)
    return taken
