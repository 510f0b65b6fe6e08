"""All layers of an encoder as one node of autograd's graph."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import paddle
from paddle.autograd import PyLayer

from onion.engine.backward import REMEDY, is_once, refuse, refuse_more, running_call
from onion.models import ops
from onion.models.fused.eligibility import adapters, plain_parts
from onion.models.fused.training import layer as one
from onion.models.fused.training import primitives
from onion.models.fused.training.layer import LayerMemory
from onion.models.fused.training.runtime import Gradients, Part, at_once, split
from onion.models.packing import Packing
from onion.models.queries import AllTokens, Queries, queries_of

if TYPE_CHECKING:
    from onion.models.layers import EncoderLayer

PARTS = 2
"""Number of parts of a batch, independent of the number of threads: masks are drawn and gradients summed by part, so a
run continues with the same dropout and order of sums on a machine with more or fewer processors (bit-identical where
products are, docs/reliability.md). More parts would need more memory for gradients, and wait for each other, because
Python starts the kernels of one at a time."""


def run(
    layers: Sequence[EncoderLayer],
    x: paddle.Tensor,
    packing: Packing,
    firsts_only: bool = False,
    recomputing: bool = False,
) -> paddle.Tensor:
    """Apply layers for which :func:`fits` is true to [tokens, hidden]; ``firsts_only``: return [batch, hidden].

    With ``recomputing``, only the input of each layer is kept for the backward pass, which computes the rest again. The
    gradient of the result equals that of the plain layers but for rounding, and has no gradient itself.
    """
    drops = any(layer.training and (layer.dropout or layer.self_attn.dropout) for layer in layers)
    parts = split(packing, PARTS, ops.drawn_seed() if drops else None)
    work = _Work(layers, parts, not x.stop_gradient, firsts_only, recomputing)
    width = x.shape[1]
    rows = [_Parameter.apply(parameter, work, width) for parameter in work.parameters]
    out = _Layers.apply(paddle.concat([x, paddle.add_n(rows) if rows else paddle.zeros([1, width])]), work)
    if not out.stop_gradient:
        out.register_hook(work.refuse_another_way_back)  # before Paddle reads what has been freed
    return out


def fits(layers: Sequence[EncoderLayer], x: paddle.Tensor) -> bool:
    """Return whether these layers apply: in training on the CPU, in float32, with unchanged layers.

    There must be a single backward pass (:mod:`onion.engine.backward`), because a second one through a freed PyLayer
    ends the process (Paddle 3.3.1). A GradientMachine guarantees it; otherwise the plain layers are used, as for layers
    with a hook or a replaced part, and for adapters with dropout.
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
        and not any(adapter.dropout for adapter in adapters(parts))
    )


@attrs.define(eq=False, slots=False)  # cached properties live in __dict__
class _Work:
    """A batch on its way through the layers.

    Attributes:
        layers: in sequence.
        parts: of the batch.
        through: whether the input needs a gradient.
        firsts_only: whether the last layer is computed for the first token of each row only.
        recomputing: whether the memory of a layer is its input, from which the backward pass computes the rest again.
        memories: the memories of the layers, for each part.
        gone_back: whether Paddle has freed the graph, as ``backward`` does and ``paddle.grad`` does not.
        gradients: of the parameters, after the backward pass.
    """

    layers: Sequence[EncoderLayer]
    parts: Sequence[Part]
    through: bool
    firsts_only: bool
    recomputing: bool
    memories: list[list[LayerMemory | _Input]] = attrs.field(factory=list, init=False)
    gone_back: bool = attrs.field(default=False, init=False)
    gradients: Gradients = attrs.field(factory=Gradients, init=False)

    @cached_property
    def parameters(self) -> list[paddle.Tensor]:
        """The trainable parameters of the layers, each once, even if layers share it."""
        every = [each for layer in self.layers for each in layer.parameters() if not each.stop_gradient]
        return list({each.name: each for each in every}.values())

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """[tokens, hidden] -> [tokens, hidden], or [batch, hidden]."""
        done = at_once(self._forward, [(part, x[part.start : part.stop]) for part in self.parts])
        self.memories = [memories for _, memories in done]
        return done[0][0] if len(done) == 1 else paddle.concat([out for out, _ in done])

    def refuse_another_way_back(self, gradient: paddle.Tensor) -> None:
        """Raise an OnionError on a second backward pass, which would end the process."""
        if self.gone_back:
            refuse(
                f"the graph of {WHICH}, has been freed by an earlier backward pass of the network, its loss or one of "
                f"their hooks; {REMEDY}"
            )

    def backward(self, gradient: paddle.Tensor) -> list[paddle.Tensor]:
        """Return the gradient of the input, part by part, and keep those of the parameters."""
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
        """The layer at which the backward pass ends: nothing below it is trainable."""
        if self.through:
            return 0
        learns = [any(not each.stop_gradient for each in layer.parameters()) for layer in self.layers]
        return learns.index(True)

    def _forward(self, piece: tuple[Part, paddle.Tensor]) -> tuple[paddle.Tensor, list[LayerMemory | _Input]]:
        part, x = piece
        memories: list[LayerMemory | _Input] = []
        for layer, queries in zip(self.layers, self._queries(part), strict=True):
            given = _Input(x, part.random_state)
            x, memory = one.forward(layer, x, queries, part)
            memories.append(given if self.recomputing else memory)
        return x, memories

    def _queries(self, part: Part) -> list[Queries]:
        """Return the queries of each layer."""
        return [*[AllTokens(part.packing)] * (len(self.layers) - 1), queries_of(part.packing, self.firsts_only)]

    def _backward(
        self, piece: tuple[tuple[Part, paddle.Tensor], list[LayerMemory | _Input]]
    ) -> tuple[paddle.Tensor, Gradients]:
        (part, gradient), memories = piece
        gradients = Gradients()
        steps = list(zip(self.layers, memories, self._queries(part), strict=True))
        for layer, kept, queries in steps[self._lowest :][::-1]:
            memory = kept.recompute(layer, queries, part) if isinstance(kept, _Input) else kept
            gradient = one.backward(layer, memory, gradient, queries, gradients)
        return gradient, gradients


@attrs.frozen(eq=False)
class _Input:
    """What the values of a layer are computed from.

    Attributes:
        x: its input, [tokens, hidden].
        random_state: of the generator of the part's masks, before the layer.
    """

    x: paddle.Tensor
    random_state: Mapping[str, Any] | None

    def recompute(self, layer: EncoderLayer, queries: Queries, part: Part) -> LayerMemory:
        """Return what the layer computed, with the same masks."""
        part.rewind(self.random_state)
        return one.forward(layer, self.x, queries, part)[1]


# Under paddle.grad, a PyLayer has to return None for each input without a requested gradient, and is not told which
# those are. A node with one input avoids that; so every parameter has its own node, and Paddle's operations join them
# with x: rows of zeros, added up and put behind x.


class _Parameter(PyLayer):
    """Takes a parameter and returns a row of zeros; its gradient is the one that the layers computed."""

    @staticmethod
    def forward(ctx: Any, parameter: paddle.Tensor, work: _Work, width: int) -> paddle.Tensor:
        ctx.work, ctx.parameter = work, parameter
        return paddle.zeros([1, width])

    @staticmethod
    def backward(ctx: Any, _: paddle.Tensor) -> paddle.Tensor:
        return ctx.work.gradients.of(ctx.parameter)


WHICH = "the encoder's fused layers, which a GradientMachine uses"


class _Layers(PyLayer):
    """Takes x and a last row of zeros, and returns the output of the layers for x."""

    @staticmethod
    def forward(ctx: Any, rows: paddle.Tensor, work: _Work) -> paddle.Tensor:
        ctx.work = work
        return work.forward(rows[:-1])

    @staticmethod
    def backward(ctx: Any, gradient: paddle.Tensor) -> paddle.Tensor:
        call = running_call(sys._getframe(1))
        refuse_more(call, WHICH)
        ctx.work.gone_back = "inputs" not in call  # an argument of paddle.grad
        return paddle.concat([*ctx.work.backward(gradient), paddle.zeros([1, gradient.shape[1]])])
