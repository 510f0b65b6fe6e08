"""LayerNorm whose gradient is right on the CPU too."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F  # noqa: N812  the name everybody knows it by
from paddle import nn

from onion.models import ops


class LayerNorm(nn.LayerNorm):
    """``nn.LayerNorm`` over the last axis of [tokens, width].

    In Paddle 3.3.1 the gradient that the CPU kernel finds for x is wrong wherever the weight gets none: where it is
    frozen, and in ``paddle.grad`` of anything else. Without weight and bias it is right, so these are applied apart.
    """

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """[tokens, width] -> [tokens, width]."""
        if not (ops.on_cpu(x) and paddle.is_grad_enabled()):
            return super().forward(x)
        normal = F.layer_norm(x, x.shape[-1:], epsilon=self._epsilon)
        return normal * ops.repeated(self.weight, x.shape[0]) + ops.repeated(self.bias, x.shape[0])
