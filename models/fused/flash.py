"""Attention on a GPU in 16 bits: Paddle's variable-length kernel, which computes no padding and stores no scores.

Its input are the packed tokens. It computes the formula of ``SelfAttention`` (layers.py), which is used whenever
:func:`precision` returns None; tests/models/fused/test_flash.py compares the two.
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
"""The kernel is for NVIDIA's Ampere (A100, RTX 30) and later."""

HEAD_STEP, LARGEST_HEAD = 8, 192
"""Head sizes that the kernel supports; up to 256 it has a backward pass on some GPUs only."""


def precision(query: paddle.Tensor, heads: int) -> paddle.dtype | None:
    """Return the type in which the kernel computes for ``query``, [tokens, hidden]: its own, or autocast's.

    None, and the formula is used: in 32 bits, off a GPU, on older GPUs, for other head sizes, while a graph is traced.
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
    """Compute attention of packed query, key and value, [tokens, hidden] each and not scaled, by the kernel.

    The scores are multiplied by ``scale``; ``dropout`` is applied after the softmax, with masks that the kernel draws.
    The result has the type ``dtype``, which :func:`precision` returned.
    """
    split = [packing.tokens, packing.heads, -1]
    starts, longest = packing.starts, packing.longest
    parts = (part.astype(dtype).reshape(split) for part in (query, key, value))
    mixed, _ = flash_attention.flash_attn_unpadded(
        *parts, starts, starts, longest, longest, scale, dropout=dropout, training=dropout > 0
    )
    return mixed.reshape([packing.tokens, -1])


def _product_type(x: paddle.Tensor) -> paddle.dtype:
    """Return the type of a product with ``x``: autocast's if it is active, else that of ``x``."""
    tracer = framework._dygraph_tracer()
    return x.dtype if tracer._amp_level == core.AmpLevel.O0 else getattr(paddle, tracer._amp_dtype)


@cache
def _is_able() -> bool:
    """Return whether this GPU supports the kernel."""
    return tuple(paddle.device.cuda.get_device_capability()) >= LEAST_CAPABILITY


@cache
def _is_registered(dtype: paddle.dtype) -> bool:
    """Return whether this build of Paddle has the kernel; builds for the CPU do not."""
    kernels = core._get_registered_phi_kernels("all").get(OPERATOR, ())  # "(GPU, Undefined(AnyLayout), float16)"
    return any(kernel.startswith("(GPU") and kernel.endswith(f" {_name(dtype)})") for kernel in kernels)


def _name(dtype: paddle.dtype) -> str:
    return str(dtype).removeprefix("paddle.")
