"""What a batch leaves on networks (gradients, running means, a loss): the mean over its pieces, on all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from onion.device import detached, paddle
from onion.distributed.sums import RunningSum, TreeSum
from onion.training.microbatches import clear_gradients

if TYPE_CHECKING:
    from onion.distributed.group import Group

SMALLEST = float(np.finfo(np.float32).tiny)
"""The smallest divisor, so that the mean over nothing is 0."""


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

    def take(self, weight: float) -> list[Any]:
        """Take away the gradients, and the changes of the buffers; return both times a weight, in 32 bits or more.

        What has no gradient, and what a weight of 0 takes, is returned as 0.
        """
        taken: list[Any] = []
        for parameter in self.parameters:
            taken.append(_times(parameter, parameter.grad if weight else None, weight))
            clear_gradients([parameter])  # one by one, or there would be two copies of all
        for buffer, start in zip(self.buffers, self.start, strict=True):
            taken.append(_times(buffer, buffer - start if weight else None, weight))
            buffer.set_value(start)
        return taken

    def leave(self, taken: Sequence[Any], alive: Sequence[bool]) -> None:
        """Set the gradients of the parameters that are alive, and change the buffers: the opposite of ``take``."""
        for parameter, gradient, lives in zip(self.parameters, taken, alive, strict=False):
            if lives:
                parameter.grad = gradient.astype(parameter.dtype)
        for buffer, start, change in zip(self.buffers, self.start, taken[len(self.parameters) :], strict=True):
            buffer.set_value(start + change.astype(start.dtype))


class Mean:
    """The mean over the pieces of a batch, weighted by what the loss of each is a mean over.

    The sums of all weights come with those of the gradients, which are divided once, at the end.

    Args:
        learned: what the pieces leave something on.
        total: adds up what each has left.
    """

    def __init__(self, learned: Learned, total: TreeSum | RunningSum) -> None:
        self._learned, self._total = learned, total
        self._has = [False] * len(learned.parameters)
        self._has_loss = False
        self._pieces = 0

    def add(self, weight: float, loss: Any) -> None:
        """Take what a piece has left; one that an item inside has skipped weighs nothing."""
        has = [each.grad is not None for each in self._learned.parameters]
        self._has = [a or b for a, b in zip(self._has, has, strict=True)]
        self._has_loss |= loss is not None
        with paddle().no_grad():
            self._put(loss, weight if loss is not None or any(has) else 0.0)

    def _put(self, loss: Any, weight: float) -> None:
        """Add what is there to the total, and begin anew; of weight 0 nothing is, not even what is no number."""
        weighs = paddle().full([1], weight, "float32")
        lost = detached(loss).astype("float32").reshape([1]) if weight and loss is not None else 0.0
        self._total.add([*self._learned.take(weight), weighs * lost, weighs])
        self._pieces += 1

    def leave(self, group: Group, at: dict[str, Any]) -> Any:
        """Leave the mean over all pieces of all ranks on the networks; return the loss."""
        alive, has_loss = _on_any(group, at, self._has, self._has_loss)
        with paddle().no_grad():
            while self._pieces < group.cut.count:  # pieces without an example
                self._put(None, 0.0)
            *summed, loss, weight = self._total.result(group.rank, group.world_size)
            weight = weight.clip(min=SMALLEST)
            self._learned.leave([each / weight.astype(each.dtype) for each in summed], alive)
            return (loss / weight).reshape([]) if has_loss else None


def _times(like: Any, value: Any, weight: float) -> Any:
    """Return a value times a weight, 0 for None; with the shape of another tensor, in 32 bits or more.

    gloo adds float16 1 and 1 up to infinity, without an error (Paddle 3.3.1); and bfloat16 has 8 bits for a long sum.
    """
    kind = "float64" if like.dtype == paddle().float64 else "float32"
    return paddle().zeros(like.shape, kind) if value is None else value.detach().astype(kind) * weight


def _on_any(group: Group, at: dict[str, Any], has: list[bool], has_loss: bool) -> tuple[list[bool], bool]:
    """Return which parameters have a gradient on any rank, and whether any has a loss; all must be at one place."""
    told = group.exchange({"at": at, "has": np.packbits([*has, has_loss]).tobytes().hex()})
    if told is None:
        return has, has_loss
    group.refuse_out_of_step(told)
    flags = [np.unpackbits(np.frombuffer(bytes.fromhex(each["has"]), np.uint8)) for each in told]
    *alive, any_loss = np.logical_or.reduce(flags)[: len(has) + 1].tolist()
    return alive, any_loss
