"""Which tokens ask in a layer's attention: all or, in a last layer of which the pooled output alone is read, the first.

Everything in a layer but keys and values is computed for the tokens that ask. Where a head reads the pooled output
alone, most tokens of the last layer need 2 of the 12 products of ``hidden * hidden`` that a layer has: of an encoder
with 6 layers, a seventh would be computed for nobody. The numbers are the same.
"""

from __future__ import annotations

import attrs
import paddle

from onion.models import ops
from onion.models.packing import Packing


@attrs.frozen(eq=False)
class AllTokens:
    """Every token asks.

    Attributes:
        packing: where the tokens stand.
    """

    packing: Packing

    @property
    def bias(self) -> paddle.Tensor | None:
        """What is added to the scores, as ``Packing.bias`` tells."""
        return self.packing.bias

    def pick(self, x: paddle.Tensor) -> paddle.Tensor:
        """[tokens, hidden] -> [asking, hidden]."""
        return x

    def split_heads(self, vectors: paddle.Tensor, padding_is_zero: bool = False) -> paddle.Tensor:
        """[asking, hidden] -> [batch, heads, queries a row, head size]."""
        return self.packing.split_heads(vectors, padding_is_zero)

    def merge_heads(self, heads: paddle.Tensor) -> paddle.Tensor:
        """[batch, heads, queries a row, head size] -> [asking, hidden]."""
        return self.packing.merge_heads(heads)

    def add(self, gradient: paddle.Tensor, picked: paddle.Tensor) -> paddle.Tensor:
        """Add what goes back through :meth:`pick`, in place: [tokens, hidden] and [asking, hidden]."""
        return gradient.add_(picked)


@attrs.frozen(eq=False)
class FirstTokens:
    """The first token of each row asks; all methods and shapes as those of :class:`AllTokens`."""

    packing: Packing

    @property
    def bias(self) -> paddle.Tensor | None:
        """What is added to the scores of one query a row."""
        return self.packing.bias_of_firsts

    def pick(self, x: paddle.Tensor) -> paddle.Tensor:
        """[tokens, hidden] -> [batch, hidden]."""
        return ops.rows(x, self.packing.firsts)

    def split_heads(self, vectors: paddle.Tensor, padding_is_zero: bool = False) -> paddle.Tensor:
        """[batch, hidden] -> [batch, heads, 1, head size]; there is no padding."""
        return vectors.reshape([self.packing.batch, self.packing.heads, 1, -1])

    def merge_heads(self, heads: paddle.Tensor) -> paddle.Tensor:
        """[batch, heads, 1, head size] -> [batch, hidden]."""
        return heads.reshape([self.packing.batch, -1])

    def add(self, gradient: paddle.Tensor, picked: paddle.Tensor) -> paddle.Tensor:
        """Add what goes back through :meth:`pick`: [tokens, hidden] and [batch, hidden]."""
        firsts = self.packing.firsts
        return paddle.scatter_(gradient, firsts, picked.add_(ops.rows(gradient, firsts)))


Queries = AllTokens | FirstTokens


def queries_of(packing: Packing, firsts_only: bool) -> Queries:
    """Return who asks."""
    return FirstTokens(packing) if firsts_only else AllTokens(packing)
