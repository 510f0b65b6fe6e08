"""Attention on a GPU in 16 bits: Paddle's variable-length kernel, which computes no padding and keeps no scores.

The packed tokens go into it as they are. What it computes is the formula of ``SelfAttention`` (layers.py), which serves
wherever :func:`precision` finds a reason; tests/models/fused/test_flash.py holds the two against each other.
"""

from __future__ import annotations

from functools import cache

import paddle
from paddle.base import core, framework
from paddle.nn.functional import flash_attention

from onion.models import ops
from onion.models.packing import Packing

SIXTEEN_BITS = (paddle.float16, paddle.bfloat16)
OPERATOR = "flash_attn_unpadded"
LEAST_CAPABILITY = (8, 0)
"""The kernel was written for NVIDIA's Ampere (A100, RTX 30) and what came after it."""

HEAD_STEP, LARGEST_HEAD = 8, 192
"""Sizes of a head that the kernel takes; up to 256 it has a way back on some GPUs only."""


def precision(query: paddle.Tensor, heads: int) -> paddle.dtype | None:
    """Tell in which type the kernel is to compute.

    Args:
        query: what ``q_proj`` gave, [tokens, hidden].
        heads: number of attention heads.

    Returns:
        float16 or bfloat16, that of ``query`` or of the autocast that is at work; or None, and the formula has to
        serve: in 32 bits, off a GPU, on one that the kernel was not written for, for other sizes of a head, while a
        graph is traced.
    """
    size = query.shape[-1] // heads
    if not ops.on_gpu(query) or size % HEAD_STEP or size > LARGEST_HEAD:
        return None
    dtype = _product_type(query)
    return dtype if dtype in SIXTEEN_BITS and _is_registered(dtype) and _is_able() else None


def attend(
    query: paddle.Tensor,
    key: paddle.Tensor,
    value: paddle.Tensor,
    packing: Packing,
    scale: float,
    dropout: float,
    dtype: paddle.dtype,
) -> paddle.Tensor:
    """Compute attention.

    Args:
        query: [tokens, hidden], not scaled yet.
        key: the same.
        value: the same.
        packing: where the tokens stand.
        scale: of the scores.
        dropout: probability, of what the softmax gives; 0 where nothing is learned. The kernel draws the masks.
        dtype: what :func:`precision` said.

    Returns:
        [tokens, hidden] of that type.
    """
    split = [packing.tokens, packing.heads, -1]
    starts, longest = packing.starts, packing.longest
    parts = (part.astype(dtype).reshape(split) for part in (query, key, value))
    mixed, _ = flash_attention.flash_attn_unpadded(
        *parts, starts, starts, longest, longest, scale, dropout=dropout, training=dropout > 0
    )
    return mixed.reshape([packing.tokens, -1])


def _product_type(x: paddle.Tensor) -> paddle.dtype:
    """The type in which a product with ``x`` is computed now: autocast's where one is at work, else its own."""
    tracer = framework._dygraph_tracer()
    return x.dtype if tracer._amp_level == core.AmpLevel.O0 else getattr(paddle, tracer._amp_dtype)


@cache
def _is_able() -> bool:
    """Tell whether the kernel was written for GPUs such as this one."""
    return tuple(paddle.device.cuda.get_device_capability()) >= LEAST_CAPABILITY


@cache
def _is_registered(dtype: paddle.dtype) -> bool:
    """Tell whether this build of Paddle has the kernel; those for the CPU have not."""
    kernels = core._get_registered_phi_kernels("all").get(OPERATOR, ())  # "(GPU, Undefined(AnyLayout), float16)"
    return any(kernel.startswith("(GPU") and kernel.endswith(f" {_name(dtype)})") for kernel in kernels)


def _name(dtype: paddle.dtype) -> str:
    return str(dtype).removeprefix("paddle.")
