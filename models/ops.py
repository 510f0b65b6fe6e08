"""Operations that determine an encoder's speed on the CPU, each in the form that is fastest with Paddle's kernels.

Times in the comments are microseconds, forward + backward, for [448, 384] float32 (32 texts of 14 tokens) unless stated
otherwise; 2 cores of an Intel Xeon (AVX-512), Paddle 3.3.1. Off the CPU, and while a graph is traced, the plain
operation is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import paddle
import paddle.nn.functional as F  # noqa: N812  the name everybody knows it by
from paddle import _C_ops, nn

from onion import device

# A dropout mask draws 16 bits an element, so probabilities are rounded to multiples of this (0.1 -> 0.100006).
_STEPS = 1 << 16


def linear(x: paddle.Tensor, weight: paddle.Tensor, bias: paddle.Tensor) -> paddle.Tensor:
    """``x @ weight + bias``: [rows, in], [in, out] and [out] -> [rows, out]."""
    if not on_cpu(x):
        return F.linear(x, weight, bias)
    # The CPU kernels are slow at repeating a row and at summing rows for the bias's gradient; as a product with a
    # column of ones both use the math library: 384 -> 1536 takes 7500 instead of F.linear's 8500, 384 -> 384 takes
    # 1650 instead of 2150. (paddle.addmm is about as fast, but Paddle 3.3.1 crashes if its first argument needs no
    # gradient: a frozen bias, or paddle.grad with respect to something else.)
    return paddle.matmul(x, weight) + repeated(bias, x.shape[0])


def repeated(row: paddle.Tensor, count: int) -> paddle.Tensor:
    """[width] -> [count, width], as a product; its gradient is a product too."""
    return paddle.matmul(paddle.ones([count, 1], row.dtype), row.unsqueeze(0))


class LayerNorm(nn.LayerNorm):
    """``nn.LayerNorm`` over the last axis of [tokens, width], with a correct gradient on the CPU.

    In Paddle 3.3.1 the CPU kernel's gradient of x is wrong if the weight needs none: if it is frozen, and in
    ``paddle.grad`` with respect to something else. It is right without weight and bias, so these are applied
    separately.
    """

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """[tokens, width] -> [tokens, width]."""
        if not (on_cpu(x) and paddle.is_grad_enabled()):
            return super().forward(x)
        normal = F.layer_norm(x, x.shape[-1:], epsilon=self._epsilon)
        return normal * repeated(self.weight, x.shape[0]) + repeated(self.bias, x.shape[0])


def dropout(x: paddle.Tensor, probability: float, training: bool) -> paddle.Tensor:
    """Zero each element with this probability, and scale the others so that the expectation stays the same.

    Reproducible from Paddle's generator: ``paddle.seed`` and a restored generator state give the same masks. On the CPU
    Paddle draws a seed and numpy the bits (Paddle's own mask: 1750; this one: 900). The scale matches the rounded
    probability, so the expectation is exact.

    Args:
        x: any shape.
        probability: in [0, 1).
        training: else ``x`` is returned.
    """
    if not training or probability == 0:
        return x
    if not (on_cpu(x) and x.dtype == paddle.float32):
        return F.dropout(x, probability)
    random = np.random.Generator(np.random.SFC64(drawn_seed()))
    return x * as_tensor(mask(random, x.shape, probability))


def drawn_seed() -> int:
    """Draw a seed from Paddle's generator for masks that numpy draws."""
    high, low = map(int, paddle.randint(0, 2**31 - 1, [2], dtype="int64").tolist())
    return high << 31 | low


def mask(random: np.random.Generator, shape: Sequence[int], probability: float) -> np.ndarray:
    """Draw float32 zeros with this probability, else the scale."""
    dropped = min(round(probability * _STEPS), _STEPS - 1)
    count = math.prod(shape)
    bits = random.integers(0, 1 << 64, -(-count // 4), dtype=np.uint64).view(np.uint16)[:count]
    kept: np.ndarray = (bits >= dropped) * np.float32(_STEPS / (_STEPS - dropped))
    return kept.reshape(shape)


def as_tensor(array: np.ndarray) -> paddle.Tensor:
    """Convert an array to a tensor without the memory that ``paddle.to_tensor`` leaves behind on the CPU."""
    return device.to_tensors(array)


def rows(table: paddle.Tensor, index: paddle.Tensor, zero: int = -1) -> paddle.Tensor:
    """``table[index]`` of [n, width] and int64 [m]: pick rows; the index ``zero`` stands for a row of zeros.

    The embedding kernels are the fastest that pick rows, above all backward (unpacking [448, 384] to heads: embedding
    210, gather 350, gather and then transpose 2450).
    """
    return _C_ops.embedding(index, table, zero, False)


def on_cpu(x: paddle.Tensor) -> bool:
    """Return whether a tensor is computed on the CPU, eagerly."""
    return bool(paddle.in_dynamic_mode() and x.place.is_cpu_place())


def on_gpu(x: paddle.Tensor) -> bool:
    """Return whether a tensor is computed on a GPU, eagerly."""
    return bool(paddle.in_dynamic_mode() and x.place.is_gpu_place())
