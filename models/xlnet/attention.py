"""XLNet's attention: by content, by distance and by segment.

A score is the sum of three products of the query with: the key of the other token; a key of the distance to it; a
vector for "another segment" if it is in another one. (The reference has a vector for "the same segment" as well; their
difference is equivalent, because the softmax ignores what all keys of a query have in common.)

Sources: Yang et al. 2019, section 2.4 and appendix A.2; Dai et al. 2019 (Transformer-XL), section 3.3.
"""

from __future__ import annotations

import attrs
import numpy as np
import paddle
import paddle.nn.functional as F  # noqa: N812  the name everybody knows it by
from paddle import nn

from onion.models import ops
from onion.models.adapter import Adapter, adapted
from onion.models.layers import normal
from onion.models.ops import LayerNorm
from onion.models.packing import Packing
from onion.models.xlnet.config import XLNetConfig


@attrs.frozen(eq=False)
class Relations:
    """The relations between the tokens of a batch, the same for all layers.

    Attributes:
        packing: the positions of the tokens.
        distances: encodings of the distances from ``length`` down to ``1 - length``, [2 * length, hidden].
        other_segment: [batch, 1, length, length], 1 if query and key are in different segments, else 0.
    """

    packing: Packing
    distances: paddle.Tensor
    other_segment: paddle.Tensor


class RelativeAttention(nn.Layer):
    """Attention, dropout, residual and LayerNorm, with the reference's parameter names."""

    def __init__(self, config: XLNetConfig) -> None:
        super().__init__()
        width, heads, size = config.hidden_size, config.num_attention_heads, config.head_size

        def parameter(*shape: int) -> paddle.Tensor:
            return self.create_parameter(list(shape), attr=normal(config))

        self.q, self.k, self.v, self.o, self.r = (parameter(width, width) for _ in range(5))
        self.r_r_bias, self.r_s_bias, self.r_w_bias = (parameter(heads, size) for _ in range(3))
        self.seg_embed = parameter(2, heads, size)
        self.q_lora: Adapter | None = None
        self.k_lora: Adapter | None = None
        self.v_lora: Adapter | None = None
        self.layer_norm = LayerNorm(width, epsilon=config.layer_norm_eps)
        self.scale = size**-0.5
        self.dropout = config.hidden_dropout_prob

    def forward(self, x: paddle.Tensor, relations: Relations) -> paddle.Tensor:
        """[tokens, hidden] -> [tokens, hidden]."""
        packing = relations.packing
        probabilities = ops.dropout(F.softmax(self.scores(x, relations)), self.dropout, self.training)
        value = packing.split_heads(adapted(paddle.matmul(x, self.v), x, self.v_lora))
        mixed = packing.merge_heads(paddle.matmul(probabilities, value))
        attended = paddle.matmul(mixed, self.o, transpose_y=True)
        return self.layer_norm(ops.dropout(attended, self.dropout, self.training) + x)

    def scores(self, x: paddle.Tensor, relations: Relations) -> paddle.Tensor:
        """[tokens, hidden] -> [batch, heads, query, key], before the softmax; near -1e9 for padded keys."""
        packing = relations.packing
        query = packing.split_heads(adapted(paddle.matmul(x, self.q), x, self.q_lora) * self.scale)
        key = packing.split_heads(adapted(paddle.matmul(x, self.k), x, self.k_lora))
        segment = (self.seg_embed[1] - self.seg_embed[0]).unsqueeze([0, 3])

        by_content = paddle.matmul(self._biased(query, self.r_w_bias), key, transpose_y=True)
        by_distance = relative_shift(paddle.matmul(self._biased(query, self.r_r_bias), self._distance_keys(relations)))
        by_segment = paddle.matmul(self._biased(query, self.r_s_bias), segment) * relations.other_segment
        scores = by_content + by_distance + by_segment
        return scores if packing.bias is None else scores + packing.bias

    def _distance_keys(self, relations: Relations) -> paddle.Tensor:
        """[1, heads, head size, 2 * length]."""
        heads, size = self.r_w_bias.shape
        keys = paddle.matmul(relations.distances, self.r).reshape([1, -1, heads, size])
        return keys.transpose([0, 2, 3, 1])

    def _biased(self, query: paddle.Tensor, bias: paddle.Tensor) -> paddle.Tensor:
        return query + (bias * self.scale).unsqueeze(1)


def relative_shift(x: paddle.Tensor) -> paddle.Tensor:
    """Convert products with keys of distances to products with keys of tokens.

    Args:
        x: [batch, heads, length, 2 * length]; column p of row i belongs to the distance ``length - p``.

    Returns:
        [batch, heads, length, length]; column j of row i belongs to the distance ``i - j``, column ``length - i + j``
        of x. In a row-major view these begin at ``length``, with rows that are one column shorter.
    """
    batch, heads, length, columns = x.shape
    flat = x.reshape([batch * heads, length * columns])[:, length:]
    return flat.reshape([batch, heads, length, columns - 1])[:, :, :, :length]


def distance_encodings(length: int, width: int, clamp_len: int) -> np.ndarray:
    """Return sines and cosines of the distances from ``length`` down to ``1 - length``: float32 [2 * length, width].

    Args:
        length: of the batch.
        width: of the encodings, even.
        clamp_len: maximum distance; larger ones count as it; <= 0: no maximum.
    """
    distances = np.arange(length, -length, -1, dtype=np.float32)
    if clamp_len > 0:
        distances = distances.clip(-clamp_len, clamp_len)
    frequencies = 1 / np.power(10000, np.arange(0, width, 2, dtype=np.float32) / width)
    angles = (distances[:, None] * frequencies).astype(np.float32)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
