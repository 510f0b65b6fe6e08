"""A low-rank change of a frozen matrix (LoRA, Hu et al. 2021); ``merging.py`` makes it a part of the matrix.

A layer that may have one for its parameter ``NAME`` has an attribute ``NAME_lora``, by default None; so the adapter of
``q_proj.weight`` has the parameters ``q_proj.weight_lora.A`` and ``.B``.
"""

from __future__ import annotations

import math

import paddle
from paddle import nn

from onion.models import ops


class Adapter(nn.Layer):
    """What is added to a matrix [in, out]: ``A [in, rank] @ B [rank, out] * scale``.

    A starts Kaiming-uniform and B at zero, so the change starts at zero.

    Args:
        width_in: rows of the matrix.
        width_out: columns of the matrix.
        rank: of the change.
        alpha: the scale is ``alpha / rank``.
        dropout: of the input, in [0, 1).
    """

    def __init__(self, width_in: int, width_out: int, rank: int, alpha: float, dropout: float = 0.0) -> None:
        super().__init__()
        kaiming = nn.initializer.KaimingUniform(negative_slope=math.sqrt(5), nonlinearity="leaky_relu")
        self.A = self.create_parameter([width_in, rank], default_initializer=kaiming)
        self.B = self.create_parameter([rank, width_out], default_initializer=nn.initializer.Constant(0.0))
        self.register_buffer("scale", paddle.full([1], alpha / rank))  # saved, so that A and B can be read alone
        self.dropout = dropout

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """[tokens, in] -> [tokens, out]."""
        narrow = paddle.matmul(ops.dropout(x, self.dropout, self.training), self.A)
        return paddle.matmul(narrow * self.scale, self.B)

    def change(self) -> paddle.Tensor:
        """Return the change of the matrix, [in, out]."""
        return paddle.matmul(self.A * self.scale, self.B)


def adapted(product: paddle.Tensor, x: paddle.Tensor, adapter: Adapter | None) -> paddle.Tensor:
    """Return the product of x and a matrix, with what the matrix's adapter adds."""
    return product if adapter is None else product + adapter(x)
