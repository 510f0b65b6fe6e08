"""Optimizer state that the ranks share: each keeps that of a part of the parameters (stage 1 of ZeRO).

Rajbhandari et al. 2020, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models". DataParallel leaves the
whole gradient on every rank, so nothing is left to reduce: every rank clips all gradients, steps the optimizer on its
own parameters, and gets the others from the ranks that have stepped them. Paddle's optimizers update each parameter by
itself, so the bits are those of a rank that steps all. Fleet's ``sharding_degree`` was tried (Paddle 3.3.1): it sums
the norm for clipping in another order, moves parameters without a gradient, and takes no parameter groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from onion.device import paddle
from onion.distributed.sums import buckets, flat, parts
from onion.errors import CompositionError
from onion.training.pairing import parameters_of

if TYPE_CHECKING:
    from onion.distributed.group import Group
    from onion.engine.item import RunnerItem

Pairs: TypeAlias = list[tuple[Any, Any]]
"""Parameters, each with its gradient."""


def owners(sizes: Sequence[int], world_size: int) -> list[int]:
    """Return the rank of each of several sizes, so that every rank has about the same in all.

    The largest first, each goes to the rank that has the least.
    """
    held = [0] * world_size
    found = [0] * len(sizes)
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        found[place] = held.index(min(held))
        held[found[place]] += sizes[place]
    return found


class Shard:
    """The parameters of an optimizer whose state this rank keeps, and the ranks of the others.

    Those that learn now are shared evenly, and those that are frozen, which have no state, among themselves.

    Args:
        optimizer: the same on all ranks.
        rank: of this process.
        world_size: how many ranks there are.
    """

    def __init__(self, optimizer: Any, rank: int, world_size: int) -> None:
        self._optimizer, self._rank = optimizer, rank
        self._parameters = parameters_of(optimizer)
        self._owners: dict[str, int] = {}
        for frozen in (False, True):
            alike = [each for each in self._parameters if each.stop_gradient is frozen]
            of_each = owners([int(each.size) for each in alike], world_size)
            self._owners |= {each.name: owner for each, owner in zip(alike, of_each, strict=True)}

    def has(self, parameter: Any) -> bool:
        """Tell whether this rank keeps the state of a parameter."""
        return self._owners[parameter.name] == self._rank

    def step(self, group: Group, at: dict[str, Any]) -> None:
        """Step the optimizer on this rank's parameters; take those of the other ranks from them.

        Args:
            group: the ranks.
            at: the place in the run, which must be the same on all ranks.

        Raises:
            RankError: it is not, or another rank has failed.
        """
        moved = [each for each in self._parameters if each.grad is not None and not each.stop_gradient]
        with own_gradients(self._optimizer, self.has):
            self._optimizer.step()
        group.refuse_out_of_step(group.everyone({"at": {**at, "parameters": len(moved)}}))
        with group.collective(), paddle().no_grad():
            for owner in range(group.world_size):
                self._take(owner, [each for each in moved if self._owners[each.name] == owner])

    def _take(self, owner: int, parameters: Sequence[Any]) -> None:
        """Set parameters to what they are on the rank that has stepped them; there, give them."""
        for bucket in buckets(parameters):
            values = flat(bucket)
            paddle().distributed.broadcast(values, src=owner)
            if owner != self._rank:
                for parameter, value in zip(bucket, parts(values, bucket), strict=True):
                    parameter.set_value(value)


@contextmanager
def own_gradients(optimizer: Any, has: Callable[[Any], bool]) -> Iterator[None]:
    """Let the steps of an optimizer clip all gradients, and then update only the parameters that are this rank's."""
    groups = [each for each in optimizer._param_groups if isinstance(each, dict)]
    clip, clips = optimizer._grad_clip, [each["grad_clip"] for each in groups]
    optimizer._grad_clip = _Own(clip, has)
    for each in groups:
        each["grad_clip"] = _Own(each["grad_clip"], has)
    try:
        yield
    finally:
        optimizer._grad_clip = clip
        for each, before in zip(groups, clips, strict=True):
            each["grad_clip"] = before


class _Own:
    """A clip of gradients, as optimizers call it: it passes on those of some parameters only."""

    def __init__(self, clip: Callable[[Pairs], Pairs] | None, has: Callable[[Any], bool]) -> None:
        self._clip, self._has = clip, has

    def __call__(self, pairs: Pairs) -> Pairs:
        clipped = pairs if self._clip is None else self._clip(pairs)
        return [(parameter, gradient) for parameter, gradient in clipped if self._has(parameter)]


def refuse_unshared(item: RunnerItem) -> None:
    """Raise CompositionError for an item whose optimizer may look at more than one parameter at a time."""
    kind = type(item.optimizer)
    if not kind.__module__.startswith("paddle.optimizer."):
        raise CompositionError(
            f"{item.name} has an optimizer of its own kind ({kind.__name__}); shard_optimizer=True takes those of "
            "paddle.optimizer, which update each parameter by itself."
        )
