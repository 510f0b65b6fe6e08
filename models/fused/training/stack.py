"""All layers of an encoder as one node of autograd's graph."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, Any

import attrs
import paddle
from paddle.autograd import PyLayer

from onion.engine.backward import is_once, refuse
from onion.models import ops
from onion.models.fused.eligibility import plain_parts
from onion.models.fused.training import layer as one
from onion.models.fused.training import primitives
from onion.models.fused.training.batch_parts import Part, split
from onion.models.fused.training.gradients import Gradients
from onion.models.fused.training.layer import LayerMemory
from onion.models.fused.training.thread_pool import at_once
from onion.models.packing import Packing
from onion.models.queries import AllTokens, Queries, queries_of

if TYPE_CHECKING:
    from onion.models.layers import EncoderLayer

PARTS = 2
"""Into how many a batch is parted, however many threads there are: masks are drawn for a part, and gradients summed by
parts, so that a run goes on with the same dropout and order of sums on a machine with more processors or fewer (to the
same bits where products do, docs/reliability.md). More parts would take more memory for gradients, and wait for each
other, because Python starts the kernels of all of them one at a time."""


def run(layers: Sequence[EncoderLayer], x: paddle.Tensor, packing: Packing, firsts_only: bool = False) -> paddle.Tensor:
    """Apply layers, one after another.

    Args:
        layers: for which :func:`fits` is true.
        x: [tokens, hidden].
        packing: where the tokens stand.
        firsts_only: compute the last layer for the first token of each row alone (models/queries.py).

    Returns:
        [tokens, hidden], or [batch, hidden]. Its gradient is that of the plain layers, but for rounding; it has no
        gradient in turn.
    """
    drops = any(layer.training and (layer.dropout or layer.self_attn.dropout) for layer in layers)
    parts = split(packing, PARTS, ops.drawn_seed() if drops else None)
    work = _Work(layers, parts, not x.stop_gradient, firsts_only)
    width = x.shape[1]
    rows = [_Parameter.apply(parameter, work, width) for parameter in work.parameters]
    out = _Layers.apply(paddle.concat([x, paddle.add_n(rows) if rows else paddle.zeros([1, width])]), work)
    if not out.stop_gradient:
        out.register_hook(work.refuse_another_way_back)  # it comes before Paddle looks at what is there no more
    return out


def fits(layers: Sequence[EncoderLayer], x: paddle.Tensor) -> bool:
    """Tell whether layers can be applied by hand: in training on the CPU, in float32, and nothing in them was changed.

    And there has to be one way back (:mod:`onion.engine.backward`), because a PyLayer that is gone back through again
    ends the process (Paddle 3.3.1). A GradientMachine promises that; whoever calls ``backward`` gets the plain layers.
    So does who looks into a layer by a hook, or has replaced a part of it.
    """
    return (
        is_once()
        and primitives.HAS_KERNELS
        and ops.on_cpu(x)
        and x.dtype == paddle.float32
        and paddle.is_grad_enabled()
        and len({layer.training for layer in layers}) == 1
        and all(_is_known(layer) for layer in layers)
    )


def _is_known(layer: EncoderLayer) -> bool:
    parts = plain_parts(layer)
    return (
        parts is not None
        and layer.activation in primitives.ACTIVATIONS_BACKWARD
        and parts.query.weight.dtype == paddle.float32
    )


@attrs.define(eq=False, slots=False)  # cached properties live in __dict__
class _Work:
    """A batch on its way through the layers.

    Attributes:
        layers: one after another.
        parts: of the batch.
        through: whether what went in has a gradient too.
        firsts_only: whether the last layer is computed for the first token of each row alone.
        memories: of each part, a layer's after another.
        gone_back: whether Paddle has let go of the graph, as ``backward`` does and ``paddle.grad`` does not.
        gradients: of the parameters, after the way back.
    """

    layers: Sequence[EncoderLayer]
    parts: Sequence[Part]
    through: bool
    firsts_only: bool
    memories: list[list[LayerMemory]] = attrs.field(factory=list, init=False)
    gone_back: bool = attrs.field(default=False, init=False)
    gradients: Gradients = attrs.field(factory=Gradients, init=False)

    @cached_property
    def parameters(self) -> list[paddle.Tensor]:
        """Those of the layers that learn, each once, also where layers share it."""
        every = [each for layer in self.layers for each in layer.parameters() if not each.stop_gradient]
        return list({each.name: each for each in every}.values())

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """[tokens, hidden] -> [tokens, hidden], or [batch, hidden]."""
        done = at_once(self._forward, [(part, x[part.start : part.stop]) for part in self.parts])
        self.memories = [memories for _, memories in done]
        return done[0][0] if len(done) == 1 else paddle.concat([out for out, _ in done])

    def refuse_another_way_back(self, gradient: paddle.Tensor) -> None:
        """Refuse to be gone back through again, which would end the process.

        Raises:
            OnionError: it was gone back through before.
        """
        if self.gone_back:
            refuse(
                "the graph of the encoder's fast layers, which a GradientMachine has, was gone back through before, by "
                f"the network, its loss or a hook of theirs; {REMEDY}"
            )

    def backward(self, gradient: paddle.Tensor) -> list[paddle.Tensor]:
        """Return the gradient of what went in, part by part, and keep those of the parameters."""
        slices = [(part, gradient[part.of_outputs(self.firsts_only)]) for part in self.parts]
        done = at_once(self._backward, list(zip(slices, self.memories, strict=True)))
        first, *others = [gradients for _, gradients in done]
        if others:
            shares = [self.parameters[start :: len(done)] for start in range(len(done))]
            at_once(lambda share: first.take(others, share), shares)
        self.gradients = first
        return [into for into, _ in done]

    @cached_property
    def _lowest(self) -> int:
        """The layer at which the way back ends: below it, nothing learns."""
        if self.through:
            return 0
        learns = [any(not each.stop_gradient for each in layer.parameters()) for layer in self.layers]
        return learns.index(True)

    def _forward(self, piece: tuple[Part, paddle.Tensor]) -> tuple[paddle.Tensor, list[LayerMemory]]:
        part, x = piece
        memories = []
        for layer, queries in zip(self.layers, self._queries(part), strict=True):
            x, memory = one.forward(layer, x, queries, part)
            memories.append(memory)
        return x, memories

    def _queries(self, part: Part) -> list[Queries]:
        """Say who asks in each layer."""
        return [*[AllTokens(part.packing)] * (len(self.layers) - 1), queries_of(part.packing, self.firsts_only)]

    def _backward(self, piece: tuple[tuple[Part, paddle.Tensor], list[LayerMemory]]) -> tuple[paddle.Tensor, Gradients]:
        (part, gradient), memories = piece
        gradients = Gradients()
        steps = list(zip(self.layers, memories, self._queries(part), strict=True))
        for layer, memory, queries in steps[self._lowest :][::-1]:
            gradient = one.backward(layer, memory, gradient, queries, gradients)
        return gradient, gradients


# Under paddle.grad, Paddle wants None at each place of a PyLayer that leads to nothing that was asked for, and does not
# say which those are. A node with one input has no such place; so every parameter has a node of its own, and what joins
# them all, with x, is an operation of Paddle's: rows of zeros, added up and put behind x.


class _Parameter(PyLayer):
    """Takes a parameter, gives a row of zeros; its gradient is what the layers found."""

    @staticmethod
    def forward(ctx: Any, parameter: paddle.Tensor, work: _Work, width: int) -> paddle.Tensor:
        ctx.work, ctx.parameter = work, parameter
        return paddle.zeros([1, width])

    @staticmethod
    def backward(ctx: Any, _: paddle.Tensor) -> paddle.Tensor:
        return ctx.work.gradients.of(ctx.parameter)


REMEDY = "compute the batch within `with onion.engine.backward.many:`, then the plain ones are used."


def _call_of(frame: FrameType | None) -> Mapping[str, Any]:
    """Return the arguments of the function of Paddle's that was called to go back; it knows what it was asked for."""
    while frame is not None and "retain_graph" not in frame.f_locals:
        frame = frame.f_back
    return {} if frame is None else frame.f_locals


def _refuse_more(call: Mapping[str, Any]) -> None:
    """Refuse another way back, which would end the process.

    Raises:
        OnionError: a graph is to be kept or made.
    """
    for name in ("retain_graph", "create_graph"):
        if call.get(name):
            refuse(f"{name}=True is not for the encoder's fast layers, which a GradientMachine has; {REMEDY}")


class _Layers(PyLayer):
    """Takes x and a last row that has no meaning, gives what the layers make of x."""

    @staticmethod
    def forward(ctx: Any, rows: paddle.Tensor, work: _Work) -> paddle.Tensor:
        ctx.work = work
        return work.forward(rows[:-1])

    @staticmethod
    def backward(ctx: Any, gradient: paddle.Tensor) -> paddle.Tensor:
        call = _call_of(sys._getframe(1))
        _refuse_more(call)
        ctx.work.gone_back = "inputs" not in call  # which paddle.grad has
        return paddle.concat([*ctx.work.backward(gradient), paddle.zeros([1, gradient.shape[1]])])
