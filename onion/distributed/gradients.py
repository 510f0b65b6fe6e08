"""What a batch leaves on networks (gradients, running means, a loss), summed over its pieces and over ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from onion.data.cut import Piece
from onion.device import detached, paddle
from onion.distributed.sums import TreeSum, all_reduced
from onion.training.microbatches import clear_gradients

if TYPE_CHECKING:
    from onion.distributed.group import Group


@attrs.frozen(eq=False)
class Learned:
    """What networks learn by: the parameters that get gradients, and buffers that change, such as running means.

    Attributes:
        parameters: each once.
        buffers: those of floating point, each once.
        start: the buffers as they were before the batch.
    """

    parameters: Sequence[Any]
    buffers: Sequence[Any]
    start: Sequence[Any]

    @classmethod
    def of(cls, networks: Sequence[Any]) -> Learned:
        """Return what some networks learn by."""
        parameters = {each.name: each for network in networks for each in network.parameters()}
        buffers = {each.name: each for network in networks for each in network.buffers() if each.is_floating_point()}
        learning = [each for each in parameters.values() if not each.stop_gradient]
        return cls(learning, [*buffers.values()], [each.clone() for each in buffers.values()])

    def set_aside(self) -> list[tuple[Any, Any]]:
        """Take away the gradients of earlier batches of the same update; return them."""
        before = [(each, each.grad.detach().clone()) for each in self.parameters if each.grad is not None]
        clear_gradients(parameter for parameter, _ in before)
        return before

    def add(self, before: Sequence[tuple[Any, Any]]) -> None:
        """Add them again."""
        for parameter, gradient in before:
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient

    def changes(self, weight: float) -> list[Any]:
        """Return how far each buffer has moved since the start, times a weight."""
        return [(each - start) * weight for each, start in zip(self.buffers, self.start, strict=True)]

    def move(self, changes: Sequence[Any]) -> None:
        """Set each buffer to where it was at the start, and a change further."""
        for buffer, start, change in zip(self.buffers, self.start, changes, strict=True):
            buffer.set_value(start + change)


class PlainSum:
    """The sum in the order that is fast: pieces add up in the gradients themselves, then ranks."""

    def __init__(self, learned: Learned) -> None:
        self._learned = learned
        self._weight = 0.0
        self._loss: Any = None

    def add(self, piece: Piece, loss: Any) -> None:
        """Add the loss of a piece; its gradients are there already."""
        self._weight += piece.weight
        if not piece.weight:
            clear_gradients(self._learned.parameters)
        elif loss is not None:
            part = detached(loss) * piece.weight
            self._loss = part if self._loss is None else self._loss + part

    def leave(self, group: Group, at: dict[str, Any]) -> Any:
        """Leave the sums over all ranks on the networks; return the loss."""
        learned = self._learned
        has = [each.grad is not None for each in learned.parameters]
        alive, has_loss = _on_any(group, at, has, self._loss is not None)
        parameters = [each for each, lives in zip(learned.parameters, alive, strict=True) if lives]
        with paddle().no_grad():
            own = [*map(_gradient, parameters), *learned.changes(self._weight), _scalar(self._loss)]
            *summed, loss = all_reduced(own) if group.world_size > 1 else own
            for parameter, gradient in zip(parameters, summed, strict=False):
                parameter.grad = gradient
            learned.move(summed[len(parameters) :])
        return loss.reshape([]) if has_loss else None


class ExactSum:
    """The sum as a tree over the pieces: what each leaves is taken apart."""

    def __init__(self, learned: Learned) -> None:
        self._learned = learned
        self._tree = TreeSum()
        self._has = [False] * len(learned.parameters)
        self._has_loss = False
        self._pieces = 0

    def add(self, piece: Piece, loss: Any) -> None:
        """Take what a piece has left; a piece without an example leaves nothing."""
        learned = self._learned
        if piece.weight:
            self._has = [has or each.grad is not None for has, each in zip(self._has, learned.parameters, strict=True)]
            self._has_loss |= loss is not None
            with paddle().no_grad():
                own = [_gradient(each).clone() for each in learned.parameters]
                weighted = None if loss is None else detached(loss) * piece.weight
                self._put([*own, *learned.changes(piece.weight), _scalar(weighted)])
        clear_gradients(learned.parameters)
        learned.move([0.0] * len(learned.buffers))

    def _put(self, left: list[Any]) -> None:
        self._tree.add(left)
        self._pieces += 1

    def leave(self, group: Group, at: dict[str, Any]) -> Any:
        """Leave the sums over all pieces on the networks; return the loss."""
        alive, has_loss = _on_any(group, at, self._has, self._has_loss)
        learned = self._learned
        with paddle().no_grad():
            while self._pieces < group.cut.count:
                nothing = [paddle().zeros_like(each) for each in (*learned.parameters, *learned.buffers)]
                self._put([*nothing, _scalar(None)])
            *summed, loss = self._tree.result(group.rank, group.world_size)
            for parameter, gradient, lives in zip(learned.parameters, summed, alive, strict=False):
                if lives:
                    parameter.grad = gradient
            learned.move(summed[len(learned.parameters) :])
        return loss.reshape([]) if has_loss else None


def _gradient(parameter: Any) -> Any:
    """Return the gradient of a parameter; zeros if it has none."""
    return paddle().zeros_like(parameter) if parameter.grad is None else parameter.grad.detach()


def _scalar(loss: Any) -> Any:
    """Return a loss as float32 ``[1]``; 0 for none."""
    return paddle().zeros([1]) if loss is None else detached(loss).astype("float32").reshape([1])


def _on_any(group: Group, at: dict[str, Any], has: list[bool], has_loss: bool) -> tuple[list[bool], bool]:
    """Return which parameters have a gradient on any rank, and whether any has a loss; all must be at one place."""
    told = group.exchange({"at": at, "has": np.packbits([*has, has_loss]).tobytes().hex()})
    if told is None:
        return has, has_loss
    group.refuse_out_of_step(told)
    flags = [np.unpackbits(np.frombuffer(bytes.fromhex(each["has"]), np.uint8)) for each in told]
    *alive, any_loss = np.logical_or.reduce(flags)[: len(has) + 1].tolist()
    return alive, any_loss
