"""Linear layers, norms and activations on [tokens, width], forward and backward.

Adding a row or a column to a matrix is slow in Paddle's CPU kernels; expanding it by a product with ones takes a fifth
of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import paddle
import paddle.nn.functional as F  # noqa: N812  the name everybody knows it by
from paddle import _C_ops

from onion.host import kernels
from onion.models import ops
from onion.models.fused.training.runtime import Gradients

if TYPE_CHECKING:
    from onion.models.adapter import Adapter
    from onion.models.layers import Linear

HAS_KERNELS = kernels.has("gelu_grad", "relu_grad", "softmax_grad")
"""Whether Paddle exposes its gradient kernels; 2.6 does not."""

Change = Callable[[paddle.Tensor, paddle.Tensor], paddle.Tensor]


def linear(layer: Linear, x: paddle.Tensor) -> paddle.Tensor:
    """[tokens, in] -> [tokens, out]."""
    out, adapter = paddle.addmm(layer.bias, x, layer.weight), layer.weight_lora
    return out if adapter is None else out.add_(adapter(x))


def linear_backward(layer: Linear, x: paddle.Tensor, gradient: paddle.Tensor, gradients: Gradients) -> paddle.Tensor:
    """Return the gradient of x, [tokens, in], for that of the output; add those of weight and bias."""
    if not layer.weight.stop_gradient:
        gradients.put(layer.weight, paddle.matmul(x, gradient, transpose_x=True))
    if not layer.bias.stop_gradient:
        gradients.put(layer.bias, column_sums(gradient))
    into, adapter = paddle.matmul(gradient, layer.weight, transpose_y=True), layer.weight_lora
    return into if adapter is None else into.add_(_adapter_backward(adapter, x, gradient, gradients))


def _adapter_backward(
    adapter: Adapter, x: paddle.Tensor, gradient: paddle.Tensor, gradients: Gradients
) -> paddle.Tensor:
    """Return the gradient of x by way of an adapter, and add those of its matrices."""
    narrow = paddle.matmul(gradient, adapter.B, transpose_y=True) * adapter.scale  # of x @ A
    if not adapter.A.stop_gradient:
        gradients.put(adapter.A, paddle.matmul(x, narrow, transpose_x=True))
    if not adapter.B.stop_gradient:
        gradients.put(adapter.B, paddle.matmul(paddle.matmul(x, adapter.A) * adapter.scale, gradient, transpose_x=True))
    return paddle.matmul(narrow, adapter.A, transpose_y=True)


def norm(layer: paddle.nn.LayerNorm, x: paddle.Tensor) -> paddle.Tensor:
    """[tokens, width] -> the same, each row normalized."""
    return F.layer_norm(x, x.shape[1:], layer.weight, layer.bias, layer._epsilon)


def norm_backward(
    layer: paddle.nn.LayerNorm, x: paddle.Tensor, gradient: paddle.Tensor, gradients: Gradients
) -> paddle.Tensor:
    """Return the gradient of x, and add those of weight and bias.

    With r = 1 / sqrt(variance + epsilon) and n = (x - mean) * r, the gradient of x is r * (g - mean(g) - n * mean(g *
    n)) for g = gradient * weight. Paddle's kernel takes ten times as long.
    """
    width = x.shape[1]
    normal, scale = _normal(x, layer._epsilon)
    weighted = gradient * normal
    if not layer.weight.stop_gradient:
        gradients.put(layer.weight, column_sums(weighted))
    if not layer.bias.stop_gradient:
        gradients.put(layer.bias, column_sums(gradient))
    weight = layer.weight.unsqueeze(1) / width  # a product with it is the mean over a row, weighted
    mean, lean = paddle.matmul(gradient, weight), paddle.matmul(weighted, weight)
    result = ops.repeated(layer.weight, x.shape[0]).multiply_(gradient)
    result.subtract_(normal.multiply_(_columns(lean, width))).subtract_(_columns(mean, width))
    return result.multiply_(scale)


def _normal(x: paddle.Tensor, epsilon: float) -> tuple[paddle.Tensor, paddle.Tensor]:
    """Return the rows with mean 0 and variance 1, and their scale, in all columns."""
    width = x.shape[1]
    share = paddle.full([width, 1], 1 / width, x.dtype)
    centred = x - _columns(paddle.matmul(x, share), width)
    scale = _columns(paddle.rsqrt(paddle.matmul(centred * centred, share) + epsilon), width)
    return centred.multiply_(scale), scale


def column_sums(x: paddle.Tensor) -> paddle.Tensor:
    """[tokens, width] -> [width]."""
    return paddle.matmul(paddle.ones([1, x.shape[0]], x.dtype), x).reshape([-1])


def _columns(column: paddle.Tensor, count: int) -> paddle.Tensor:
    """[tokens, 1] -> [tokens, count]."""
    return paddle.matmul(column, paddle.ones([1, count], column.dtype))


def _gelu_backward(x: paddle.Tensor, gradient: paddle.Tensor) -> paddle.Tensor:
    return _C_ops.gelu_grad(x, gradient, False)


def _relu_backward(x: paddle.Tensor, gradient: paddle.Tensor) -> paddle.Tensor:
    return _C_ops.relu_grad(F.relu(x), gradient)


ACTIVATIONS_BACKWARD: dict[Callable[..., paddle.Tensor], Change] = {F.gelu: _gelu_backward, F.relu: _relu_backward}
"""Activation -> its gradient, a function of the input and of the gradient of the output."""
