"""The ways around operators that Paddle has no GPU kernel for; each is a claim about the code, with its reason."""

from __future__ import annotations

from typing import NamedTuple


class HookIterator(NamedTuple):
    """A way around.

    Attributes:
        types: for which no kernel is needed.
        reason: why it is not.
    """

    types: frozenset[str]
    reason: str


BFLOAT16 = frozenset({"bfloat16"})

IN_32_BITS = "MixedPrecision has autocast compute it in float32 (onion/items/mixed_precision.py)"
AT_O1 = "MixedPrecision leaves the parameters in float32 at level O1; at O2 take AdamW, as docs/gpu.md says"

WAYS = {
    "cross_entropy_with_softmax": HookIterator(BFLOAT16, IN_32_BITS),
    "cross_entropy_with_softmax_grad": HookIterator(BFLOAT16, IN_32_BITS),
    "mean_all": HookIterator(BFLOAT16, IN_32_BITS),
    "mean_all_grad": HookIterator(BFLOAT16, IN_32_BITS),
    "momentum": HookIterator(BFLOAT16, AT_O1),
}
"""Kernel -> way; of Paddle 2.6.2, where they are missing."""

ONLY_ON_A_GPU: dict[str, set[str]] = {
    "flash_attn_unpadded": {"float16", "bfloat16"},
    "flash_attn_unpadded_grad": {"float16", "bfloat16"},
    "cast": {"float32", "float16", "bfloat16"},
}
"""Kernel -> types of what a GPU runs and the CPU cannot: attention in 16 bits (models/fused/flash.py), and autocast."""
