"""Prediction: the encoder's layers with the same results by fewer and larger operations.

    embedded [tokens, hidden]  ->  chunks of about a thousand tokens  ->  all layers over one chunk, then the next

It is fast on the CPU because a linear layer's bias is part of its product, sums are in place, the output of a layer is
still in the caches for the next one, and no layer is called, with Paddle's overhead around a call. Parameters are read
in every call and nothing is copied or kept, so changes take effect at once. There is one path for all processors:
Paddle's kernel for bias, sum and norm at once, which needs AVX-512, is not faster.

Sums have another order than in training, so results differ from those of layers.py by rounding, below 1e-5.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import paddle
from paddle import _C_ops, nn

from onion.models.fused.eligibility import plain_parts
from onion.models.layers import EncoderLayers
from onion.models.packing import Packing

PIECE = 1024
"""Approximate number of tokens of a chunk, whose inner activations fit into a processor's caches."""

log = logging.getLogger(__name__)


class Affine(NamedTuple):
    """A matrix or a scale, and a bias."""

    weight: paddle.Tensor
    bias: paddle.Tensor


class Weights(NamedTuple):
    """The weights of a layer: its parameters, except for ``activation``, ``scale`` and ``epsilons``."""

    query: Affine
    key: Affine
    value: Affine
    out: Affine
    norm1: Affine
    linear1: Affine
    linear2: Affine
    norm2: Affine
    scale: float
    epsilons: tuple[float, float]
    activation: Callable[[paddle.Tensor], paddle.Tensor]


def lean(layers: EncoderLayers, embedded: paddle.Tensor) -> list[Weights] | None:
    """Return the weights of all layers if :func:`transform` can compute them; None if they have to be called.

    That is the case if gradients or dropout are needed, off the CPU, in another precision than float32, while a graph
    is traced, or if a layer has a hook or was replaced. The first batch of each kind is logged at debug level.
    """
    read: list[Weights | None] = []
    obstacle = _obstacle(embedded)
    if obstacle is None:
        read = [_weights_of(layer) for layer in layers.layers]
        obstacle = "a layer is in training mode, has a hook or was replaced" if None in read else None
    _tell(obstacle)
    return None if obstacle else read  # type: ignore[return-value]  # mypy does not see the None gone


def _obstacle(embedded: paddle.Tensor) -> str | None:
    """Return why a batch has to go through the layers, whatever these are; None if it need not."""
    if not paddle.in_dynamic_mode():
        return "a graph is traced"
    if paddle.is_grad_enabled():
        return "gradients are enabled"
    if not embedded.place.is_cpu_place():
        return "it is not on the CPU"
    return None if embedded.dtype == paddle.float32 else "it is not in float32"


@cache  # once per reason
def _tell(obstacle: str | None) -> None:
    if obstacle:
        log.debug("the encoder's layers are called one by one, because %s", obstacle)
    else:
        log.debug("prediction uses the fused layers")


def transform(
    weights: list[Weights], embedded: paddle.Tensor, packing: Packing, firsts_only: bool = False
) -> paddle.Tensor:
    """Compute the layers with weights from :func:`lean`: float32 [tokens, hidden] -> the same.

    With ``firsts_only`` the last layer is computed for the first token of each row only: [batch, hidden]
    (models/queries.py).
    """
    if packing.tokens <= PIECE:
        return _through(weights, embedded, packing, firsts_only)
    found, start = [], 0
    for piece in pieces(packing, PIECE):
        found.append(_through(weights, embedded[start : start + piece.tokens], piece, firsts_only))
        start += piece.tokens
    return paddle.concat(found)


def pieces(packing: Packing, most: int) -> Iterator[Packing]:
    """Split a batch into chunks of rows of at most ``most`` tokens, or one row, without empty columns."""
    lengths = packing.mask.sum(axis=1)
    first = tokens = 0
    for row, length in enumerate(lengths):
        if tokens and tokens + length > most:
            yield packing.between(first, row)
            first, tokens = row, 0
        tokens += length
    yield packing.between(first, len(lengths))


def _through(weights: list[Weights], x: paddle.Tensor, packing: Packing, firsts_only: bool) -> paddle.Tensor:
    *below, last = weights
    for layer in below:
        x = _layer(layer, x, x, packing)
    asking = _C_ops.gather(x, packing.firsts, 0) if firsts_only else x
    return _layer(last, x, asking, packing)


def _layer(layer: Weights, x: paddle.Tensor, asking: paddle.Tensor, packing: Packing) -> paddle.Tensor:
    """[tokens, hidden] and, of the queries (one per row, or all), [queries, hidden] -> [queries, hidden]."""
    attended = _attention(layer, x, asking, packing)
    x = _add_and_norm(attended, layer.out, asking, layer.norm1, layer.epsilons[0])
    inner = layer.activation(_linear(x, layer.linear1))
    return _add_and_norm(inner, layer.linear2, x, layer.norm2, layer.epsilons[1])


def _attention(layer: Weights, x: paddle.Tensor, asking: paddle.Tensor, packing: Packing) -> paddle.Tensor:
    query = _linear(asking, layer.query, layer.scale)
    query = _heads(query, packing) if asking is x else _C_ops.reshape(query, [packing.batch, packing.heads, 1, -1])
    key = _heads(_linear(x, layer.key), packing)
    scores = _C_ops.matmul(query, key, False, True)
    bias = packing.bias if asking is x else packing.bias_of_firsts
    if bias is not None:
        scores = _C_ops.add_(scores, bias)
    value = _heads(_linear(x, layer.value), packing)
    weighted = _C_ops.matmul(_C_ops.softmax(scores, -1), value, False, False)
    if asking is x:
        return _picked(weighted, packing._heads_of_tokens, weighted.shape[3], [packing.tokens, -1])
    return _C_ops.reshape(weighted, [packing.batch, -1])


def _heads(packed: paddle.Tensor, packing: Packing) -> paddle.Tensor:
    """``packing.split_heads`` without the overhead of Paddle's Python functions."""
    size = packed.shape[1] // packing.heads
    return _picked(packed, packing._heads_of_places, size, [packing.batch, packing.heads, packing.length, size])


def _picked(x: paddle.Tensor, index: paddle.Tensor, width: int, shape: list[int]) -> paddle.Tensor:
    # The kernel that is fastest forward; that of ops.rows is fastest backward.
    return _C_ops.reshape(_C_ops.gather(_C_ops.reshape(x, [-1, width]), index, 0), shape)


def _linear(x: paddle.Tensor, affine: Affine, scale: float = 1.0) -> paddle.Tensor:
    """``(x @ weight + bias) * scale``."""
    return _C_ops.addmm(affine.bias, x, affine.weight, scale, scale)


def _add_and_norm(
    x: paddle.Tensor, affine: Affine, residual: paddle.Tensor, norm: Affine, epsilon: float
) -> paddle.Tensor:
    """``norm(x @ weight + bias + residual)``."""
    total = _C_ops.add_(_linear(x, affine), residual)
    return _C_ops.layer_norm(total, norm.weight, norm.bias, epsilon, 1)


def _weights_of(layer: nn.Layer) -> Weights | None:
    parts = plain_parts(layer)
    if parts is None or any(part.training for part in parts):
        return None
    return Weights(
        query=_affine(parts.query),
        key=_affine(parts.key),
        value=_affine(parts.value),
        out=_affine(parts.out),
        norm1=_affine(parts.norm1),
        linear1=_affine(parts.linear1),
        linear2=_affine(parts.linear2),
        norm2=_affine(parts.norm2),
        scale=parts.attention.scale,
        epsilons=(parts.norm1._epsilon, parts.norm2._epsilon),
        activation=parts.layer.activation,
    )


def _affine(part: nn.Layer) -> Affine:
    weight, adapter = part._parameters["weight"], part._sub_layers.get("weight_lora")
    # For a batch, the change of the matrix costs less than two more products for each token.
    return Affine(weight if adapter is None else weight + adapter.change(), part._parameters["bias"])
