"""One encoder layer for one part of a batch, forward and backward."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import paddle

from onion.models.fused.training.attention import AttentionMemory, attend, attend_backward
from onion.models.fused.training.primitives import ACTIVATIONS_BACKWARD, linear, linear_backward, norm, norm_backward
from onion.models.fused.training.runtime import Gradients, Part, masked
from onion.models.queries import Queries

if TYPE_CHECKING:
    from onion.models.layers import EncoderLayer


@attrs.frozen(eq=False)
class LayerMemory:
    """The values that the backward pass needs; [queries, hidden] unless stated otherwise.

    Attributes:
        attention: the values that its attention needs.
        first_mask: of the dropout after attention, or None.
        first_sum: the input of ``norm1``.
        middle: its output.
        inner: the input of the activation, [queries, intermediate].
        active: its output, [queries, intermediate].
        second_mask: of the dropout after the feed-forward network, or None.
        second_sum: the input of ``norm2``.
    """

    attention: AttentionMemory
    first_mask: paddle.Tensor | None
    first_sum: paddle.Tensor
    middle: paddle.Tensor
    inner: paddle.Tensor
    active: paddle.Tensor
    second_mask: paddle.Tensor | None
    second_sum: paddle.Tensor


def forward(layer: EncoderLayer, x: paddle.Tensor, queries: Queries, part: Part) -> tuple[paddle.Tensor, LayerMemory]:
    """[tokens, hidden] -> [queries, hidden]."""
    asking = queries.pick(x)
    attended, attention = attend(layer.self_attn, x, asking, queries, part)
    first_mask = part.mask(attended.shape, layer.dropout)
    first_sum = masked(attended, first_mask).add_(asking)
    middle = norm(layer.norm1, first_sum)
    inner = linear(layer.linear1, middle)
    active = layer.activation(inner)
    transformed = linear(layer.linear2, active)
    second_mask = part.mask(transformed.shape, layer.dropout)
    second_sum = masked(transformed, second_mask).add_(middle)
    memory = LayerMemory(attention, first_mask, first_sum, middle, inner, active, second_mask, second_sum)
    return norm(layer.norm2, second_sum), memory


def backward(
    layer: EncoderLayer, memory: LayerMemory, gradient: paddle.Tensor, queries: Queries, gradients: Gradients
) -> paddle.Tensor:
    """Return the gradient of the input, [tokens, hidden], and add those of the parameters."""
    summed = norm_backward(layer.norm2, memory.second_sum, gradient, gradients)
    active = linear_backward(layer.linear2, memory.active, _dropped(summed, memory.second_mask), gradients)
    inner = ACTIVATIONS_BACKWARD[layer.activation](memory.inner, active)
    middle = linear_backward(layer.linear1, memory.middle, inner, gradients).add_(summed)
    summed = norm_backward(layer.norm1, memory.first_sum, middle, gradients)
    attended = _dropped(summed, memory.first_mask)
    into, asked = attend_backward(layer.self_attn, memory.attention, attended, queries, gradients)
    return queries.add(into, asked.add_(summed))


def _dropped(gradient: paddle.Tensor, mask: paddle.Tensor | None) -> paddle.Tensor:
    return gradient if mask is None else gradient * mask
