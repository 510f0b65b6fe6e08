"""Sums of tensors over ranks: in the order that is fast, or as a tree with the same bits for any number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from onion.device import paddle

BUCKET = 25 << 20
"""Bytes that are summed at the same time, as torch's and Paddle's DataParallel do."""


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
    """Return all values in one tensor with one dimension."""
    return paddle().concat([tensor.reshape([-1]) for tensor in tensors])


def parts(tensor: Any, like: Sequence[Any]) -> list[Any]:
    """Cut a flat tensor into tensors of these shapes."""
    cut = paddle().split(tensor, [each.size for each in like]) if len(like) > 1 else [tensor]
    return [part.reshape(each.shape) for part, each in zip(cut, like, strict=True)]


def all_reduced(tensors: Sequence[Any]) -> list[Any]:
    """Return the sums over all ranks."""
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
    added between ranks that are ever further apart. So the additions are the same for any number of ranks.
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
        distance = 1
        while distance < world_size:
            own = [each for group in buckets(own) for each in parts(_with_other(flat(group), rank, distance), group)]
            distance *= 2
        return own


def _with_other(tensor: Any, rank: int, distance: int) -> Any:
    """Return the sum with the tensor of the rank that is so far away; a + b has the bits of b + a."""
    other = rank ^ distance
    theirs = paddle().empty_like(tensor)
    send: Callable[..., Any] = paddle().distributed.send
    receive: Callable[..., Any] = paddle().distributed.recv
    if rank < other:
        send(tensor, other)
        receive(theirs, other)
    else:
        receive(theirs, other)
        send(tensor, other)
    return tensor + theirs
