"""The operations that decide an encoder's speed on the CPU, each in the form that Paddle's kernels are fast at.

Times in the comments: microseconds, forward + backward, on [448, 384] float32 (32 texts of 14 tokens) unless said
otherwise; 2 cores of an Intel Xeon (AVX-512), Paddle 3.3.1. Off the CPU, and while a graph is traced, the plain
operation is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import paddle
import paddle.nn.functional as F  # noqa: N812  the name everybody knows it by
from paddle import _C_ops

from onion import device

# A dropout mask draws 16 bits an element, so probabilities are rounded to multiples of this (0.1 -> 0.100006).
_STEPS = 1 << 16


def linear(x: paddle.Tensor, weight: paddle.Tensor, bias: paddle.Tensor) -> paddle.Tensor:
    """``x @ weight + bias``.

    Args:
        x: [rows, in].
        weight: [in, out].
        bias: [out].

    Returns:
        [rows, out].
    """
    if not on_cpu(x):
        return F.linear(x, weight, bias)
    # The CPU kernels are slow at repeating a row and, above all, at summing rows for the bias's gradient; as a product
    # with a column of ones both go through the math library: 384 -> 1536 takes 7500 instead of F.linear's 8500,
    # 384 -> 384 takes 1650 instead of 2150. (paddle.addmm is about as fast, but Paddle 3.3.1 crashes where its first
    # argument needs no gradient: a frozen bias, or paddle.grad with respect to something else.)
    return paddle.matmul(x, weight) + repeated(bias, x.shape[0])


def repeated(row: paddle.Tensor, count: int) -> paddle.Tensor:
    """[width] -> [count, width], as a product, whose gradient is one too."""
    return paddle.matmul(paddle.ones([count, 1], row.dtype), row.unsqueeze(0))


def dropout(x: paddle.Tensor, probability: float, training: bool) -> paddle.Tensor:
    """Zero each element with this probability and scale the others so that the expectation stays.

    Reproducible from Paddle's generator: ``paddle.seed`` and a restored generator state give the same masks. On the CPU
    Paddle draws one seed and numpy the bits from it (with Paddle's own mask: 1750; with this one: 900). The scale
    belongs to the rounded probability, so the expectation is exact.

    Args:
        x: any shape.
        probability: in [0, 1).
        training: otherwise ``x`` is returned as it is.
    """
    if not training or probability == 0:
        return x
    if not (on_cpu(x) and x.dtype == paddle.float32):
        return F.dropout(x, probability)
    random = np.random.Generator(np.random.SFC64(drawn_seed()))
    return x * as_tensor(mask(random, x.shape, probability))


def drawn_seed() -> int:
    """Draw a seed from Paddle's generator, for masks that numpy draws."""
    high, low = map(int, paddle.randint(0, 2**31 - 1, [2], dtype="int64").tolist())
    return high << 31 | low


def mask(random: np.random.Generator, shape: Sequence[int], probability: float) -> np.ndarray:
    """Draw zeros with this probability, else the scale; float32."""
    dropped = min(round(probability * _STEPS), _STEPS - 1)
    count = math.prod(shape)
    bits = random.integers(0, 1 << 64, -(-count // 4), dtype=np.uint64).view(np.uint16)[:count]
    kept: np.ndarray = (bits >= dropped) * np.float32(_STEPS / (_STEPS - dropped))
    return kept.reshape(shape)


def as_tensor(array: np.ndarray) -> paddle.Tensor:
    """Return a tensor of an array, without what ``paddle.to_tensor`` leaves in memory on the CPU."""
    return device.to_tensors(array)


def rows(table: paddle.Tensor, index: paddle.Tensor, zero: int = -1) -> paddle.Tensor:
    """``table[index]``, rows that are picked; an embedding look-up in its widest sense.

    The embedding kernels are the fastest of those that pick rows, above all backwards (unpacking [448, 384] to heads:
    embedding 210, gather 350, gather and then transpose 2450).

    Args:
        table: [n, width].
        index: int64 [m], each in [0, n), or ``zero``.
        zero: stands in ``index`` for a row of zeros. Default: nothing does.

    Returns:
        [m, width].
    """
    return _C_ops.embedding(index, table, zero, False)


def on_cpu(x: paddle.Tensor) -> bool:
    """Tell whether a tensor is computed on the CPU, and at once: no graph is traced."""
    return bool(paddle.in_dynamic_mode() and x.place.is_cpu_place())


def on_gpu(x: paddle.Tensor) -> bool:
    """Tell whether a tensor is computed on a GPU, and at once: no graph is traced."""
    return bool(paddle.in_dynamic_mode() and x.place.is_gpu_place())
