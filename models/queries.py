"""The queries of a layer's attention: all tokens, or the first ones in a last layer whose pooled output alone is read.

Everything in a layer but keys and values is computed for the queries. If only the pooled output is read, most tokens of
the last layer need 2 of a layer's 12 products of ``hidden * hidden``: of an encoder with 6 layers, a seventh is saved.
The result is the same.
"""

from __future__ import annotations

import attrs
import paddle

from onion.models import ops
from onion.models.packing import Packing


@attrs.frozen(eq=False)
class AllTokens:
    """Every token is a query.

    Attributes:
        packing: the positions of the tokens.
    """

    packing: Packing

    @property
    def bias(self) -> paddle.Tensor | None:
        """The term that is added to the scores, see ``Packing.bias``."""
        return self.packing.bias

    def pick(self, x: paddle.Tensor) -> paddle.Tensor:
        """[tokens, hidden] -> [queries, hidden]."""
        return x

    def split_heads(self, vectors: paddle.Tensor, padding_is_zero: bool = False) -> paddle.Tensor:
        """[queries, hidden] -> [batch, heads, queries a row, head size]."""
        return self.packing.split_heads(vectors, padding_is_zero)

    def merge_heads(self, heads: paddle.Tensor) -> paddle.Tensor:
        """[batch, heads, queries a row, head size] -> [queries, hidden]."""
        return self.packing.merge_heads(heads)

    def add(self, gradient: paddle.Tensor, picked: paddle.Tensor) -> paddle.Tensor:
        """Add the gradient of what :meth:`pick` returned, in place: [tokens, hidden] and [queries, hidden]."""
        return gradient.add_(picked)


@attrs.frozen(eq=False)
class FirstTokens:
    """The first token of each row is a query; methods and shapes as in :class:`AllTokens`."""

    packing: Packing

    @property
    def bias(self) -> paddle.Tensor | None:
        """The term that is added to the scores of one query per row."""
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
        """Add the gradient of what :meth:`pick` returned: [tokens, hidden] and [batch, hidden]."""
        firsts = self.packing.firsts
        return paddle.scatter_(gradient, firsts, picked.add_(ops.rows(gradient, firsts)))


Queries = AllTokens | FirstTokens


def queries_of(packing: Packing, firsts_only: bool) -> Queries:
    """Return the queries of a layer."""
    return FirstTokens(packing) if firsts_only else AllTokens(packing)
