"""Attention of one part of a batch, forward and backward."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import paddle
import paddle.nn.functional as F  # noqa: N812  the name everybody knows it by
from paddle import _C_ops

from onion.models.fused.training.primitives import linear, linear_backward
from onion.models.fused.training.runtime import Gradients, Part, masked
from onion.models.queries import Queries

if TYPE_CHECKING:
    from onion.models.layers import SelfAttention


@attrs.frozen(eq=False)
class AttentionMemory:
    """The values that the backward pass needs.

    Attributes:
        x: the input, [tokens, hidden].
        asking: the queries among it, [queries, hidden].
        query: [rows, heads, queries, head size], scaled.
        key: [rows, heads, length, head size]; so is ``value``.
        softmax: the probabilities, [rows, heads, queries, length].
        dropped: the same after dropout.
        mask: of the dropout, or None.
        merged: the input of ``out_proj``, [queries, hidden].
    """

    x: paddle.Tensor
    asking: paddle.Tensor
    query: paddle.Tensor
    key: paddle.Tensor
    value: paddle.Tensor
    softmax: paddle.Tensor
    dropped: paddle.Tensor
    mask: paddle.Tensor | None
    merged: paddle.Tensor


def attend(
    layer: SelfAttention, x: paddle.Tensor, asking: paddle.Tensor, queries: Queries, part: Part
) -> tuple[paddle.Tensor, AttentionMemory]:
    """[tokens, hidden] and the queries among it -> [queries, hidden]."""
    packing = part.packing
    query = queries.split_heads(linear(layer.q_proj, asking).scale_(layer.scale))
    key = packing.split_heads(linear(layer.k_proj, x))
    value = packing.split_heads(linear(layer.v_proj, x))
    scores = paddle.matmul(query, key, transpose_y=True)
    if queries.bias is not None:
        scores.add_(queries.bias)
    softmax = F.softmax(scores)
    mask = part.mask(softmax.shape, layer.dropout)
    dropped = softmax if mask is None else softmax * mask
    merged = queries.merge_heads(paddle.matmul(dropped, value))
    memory = AttentionMemory(x, asking, query, key, value, softmax, dropped, mask, merged)
    return linear(layer.out_proj, merged), memory


def attend_backward(
    layer: SelfAttention, memory: AttentionMemory, gradient: paddle.Tensor, queries: Queries, gradients: Gradients
) -> tuple[paddle.Tensor, paddle.Tensor]:
    """Return the gradients of the input, [tokens, hidden], and of the queries; add those of the parameters."""
    packing = queries.packing
    merged = linear_backward(layer.out_proj, memory.merged, gradient, gradients)
    context = queries.split_heads(merged, padding_is_zero=True)  # padded queries have no gradient
    value = paddle.matmul(memory.dropped, context, transpose_x=True)
    probabilities = masked(paddle.matmul(context, memory.value, transpose_y=True), memory.mask)
    scores = _C_ops.softmax_grad(memory.softmax, probabilities, -1)
    query, key = paddle.matmul(scores, memory.key), paddle.matmul(scores, memory.query, transpose_x=True)
    asked = linear_backward(layer.q_proj, memory.asking, queries.merge_heads(query).scale_(layer.scale), gradients)
    into = linear_backward(layer.k_proj, memory.x, packing.merge_heads(key), gradients)
    return into.add_(linear_backward(layer.v_proj, memory.x, packing.merge_heads(value), gradients)), asked
