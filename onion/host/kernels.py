"""The operators that onion calls below Paddle's public functions, and those that it must not call.

A public function of Paddle's checks its arguments in Python, which takes as long as a small operator; or it does not
exist, as for gradients. So some operators are called directly, and all of them stand in ``CALLED``.

Paddle asks the processor before it enters a kernel of MKL, of oneDNN or of its own code generator. A few kernels of its
CPU wheel for x86 were compiled with AVX-512 and are entered without asking: on a processor without it (AMD before
Zen 4, Intel's desktops and notebooks since the 12th generation) they end the process by "Illegal instruction". They
stand in ``ENTERED_UNASKED``; nothing in onion calls them, and ``make portable`` runs everything where they would fail.
"""

from __future__ import annotations

from onion.device import paddle

CALLED = {
    "add_": "any Paddle; a sum in place",
    "addmm": "any Paddle; a product and its bias at once",
    "check_finite_and_unscale": "any Paddle, by its older name space; what paddle.amp.GradScaler calls",
    "embedding": "any Paddle; rows that are picked, with a fast gradient on the CPU",
    "empty": "any Paddle; a tensor without the memory that paddle.to_tensor keeps",
    "gather": "any Paddle; rows that are picked, on one thread",
    "gelu_grad": "Paddle 3; 2.6 does not expose it, and layers use no fused backward pass there",
    "layer_norm": "any Paddle",
    "matmul": "any Paddle",
    "relu_grad": "Paddle 3, like gelu_grad",
    "reshape": "any Paddle",
    "softmax": "any Paddle",
    "softmax_grad": "Paddle 3, like gelu_grad",
}
"""Operator -> the Paddle that has it, and why it is called. None needs more of a processor than Paddle itself."""

ENTERED_UNASKED = {
    "fused_bias_residual_layernorm": "phi::fusion::LayerNormFunc, ResidualBiasSumFunc",
    "fused_rms_norm_quant": "phi::fusion::RmsNormAvxKernel",
    "fusion_squared_mat_sub": "phi::fusion::FusionSquaredMatSubKernel",
    "self_dp_attention": "phi::fusion::scaled_dp_attention",
}
"""Operator -> its kernel on the CPU that has AVX-512 in it and does not ask for it.

Read from the machine code of Paddle 3.3.1's wheel for Linux: these are all functions of ``libphi_core.so``,
``libpaddle.so`` and ``libcommon.so`` with an instruction of AVX-512.
"""


def has(*names: str) -> bool:
    """Tell whether this Paddle hands out operators; they stand in ``CALLED``."""
    return all(name in CALLED and hasattr(paddle()._C_ops, name) for name in names)
