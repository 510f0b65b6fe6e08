"""The positions of the tokens in a padded batch, so that padding is dropped once and never computed.

    padded [batch, length]        packed [tokens]          heads [batch, heads, length, head size]
      a b c .            ---->      a b c d e f   <---->     only inside attention
      d e f g                       g

Padding may be anywhere: left, right, between tokens.
"""

from __future__ import annotations

from functools import cached_property
from typing import TypeAlias

import attrs
import numpy as np
import paddle

from onion.errors import DataError
from onion.models.ops import as_tensor, rows

# Added to the scores of padded keys: exp() of it is exactly 0 in every floating type, and adding it cannot overflow
# float32, as adding its smallest value could.
MASKED = -1e9

Ids: TypeAlias = paddle.Tensor | np.ndarray


@attrs.frozen(slots=False, eq=False)  # cached properties live in __dict__
class Packing:
    """The positions of a batch's tokens.

    Attributes:
        mask: bool [batch, length], true for tokens.
        heads: number of attention heads.
        places: int64 [tokens], positions of the tokens in the flattened [batch * length], ascending.
    """

    mask: np.ndarray
    heads: int
    places: np.ndarray

    @classmethod
    def of(cls, mask: np.ndarray, heads: int) -> Packing:
        """Find the tokens.

        Args:
            mask: [batch, length], > 0 for tokens, 0 for padding.
            heads: number of attention heads.

        Raises:
            DataError: the mask does not have two axes, has no rows, a row without a token (whose pooled output would be
                undefined), or negative numbers, as masks that are added to scores have.
        """
        if mask.ndim != 2:
            raise DataError(f"a batch must have the shape [batch, length], got {list(mask.shape)}")
        if mask.dtype.kind != "b" and not (mask.dtype.kind in "iuf" and (mask >= 0).all()):
            raise DataError(
                "attention_mask must hold numbers >= 0: 1 for tokens, 0 for padding (a mask that is added to scores, "
                "0 for tokens and -10000 for padding, is not supported)"
            )
        mask = mask.astype(bool, copy=False)
        empty = np.flatnonzero(~mask.any(axis=1))
        if len(empty) or not len(mask):
            raise DataError(f"row {empty[0]} of the batch has no token" if len(empty) else "the batch has no rows")
        return cls(mask, heads, np.flatnonzero(mask))

    def between(self, first: int, end: int) -> Packing:
        """Return the packing of the rows [first, end), without columns that are empty in all of them."""
        mask = self.mask[first:end]
        return Packing.of(np.ascontiguousarray(mask[:, mask.any(axis=0)]), self.heads)

    @property
    def batch(self) -> int:
        """Rows of the padded batch."""
        return len(self.mask)

    @property
    def length(self) -> int:
        """Columns of the padded batch."""
        return int(self.mask.shape[1])

    @property
    def tokens(self) -> int:
        """Number of tokens of the batch."""
        return len(self.places)

    @property
    def is_full(self) -> bool:
        """Whether there is no padding; then packed and padded differ in shape only."""
        return self.tokens == self.mask.size

    @cached_property
    def columns(self) -> np.ndarray:
        """The column of each token: int64 [tokens]."""
        return self.places % self.length

    @cached_property
    def counts(self) -> np.ndarray:
        """The number of tokens before each position of a row: int64 [batch, length]."""
        before: np.ndarray = np.cumsum(self.mask, axis=1) - self.mask
        return before

    @cached_property
    def firsts(self) -> paddle.Tensor:
        """The first token of each row (``[CLS]``), as index into the packed tokens: int64 [batch]."""
        lengths = self.mask.sum(axis=1)
        return as_tensor(np.cumsum(lengths) - lengths)

    @cached_property
    def lasts(self) -> paddle.Tensor:
        """The last token of each row, as index into the packed tokens: int64 [batch]."""
        return as_tensor(np.cumsum(self.mask.sum(axis=1)) - 1)

    @cached_property
    def starts(self) -> paddle.Tensor:
        """Where each row starts in the packed tokens, and where the last one ends: int32 [batch + 1]."""
        return as_tensor(np.cumsum([0, *self.mask.sum(axis=1)], dtype=np.int32))

    @cached_property
    def longest(self) -> int:
        """Number of tokens of the longest row."""
        return int(self.mask.sum(axis=1).max())

    def pack(self, values: np.ndarray | paddle.Tensor) -> np.ndarray | paddle.Tensor:
        """[batch, length] -> [tokens], on the same device."""
        if self.is_full:
            return values.reshape([-1])
        if isinstance(values, np.ndarray):
            return values.reshape(-1)[self.places]
        return paddle.gather(values.reshape([-1]), self._places)

    def find(self, places: np.ndarray) -> np.ndarray:
        """Convert positions in the flattened [batch * length] to indices into the packed tokens, of the same shape.

        Raises:
            DataError: a position is padding, or outside the batch.
        """
        found = np.minimum(np.searchsorted(self.places, places), self.tokens - 1)
        missed = places[self.places[found] != places]
        if missed.size:
            raise DataError(
                f"position {missed.flat[0]} of the flattened batch [{self.batch} rows * {self.length} columns] "
                "is not a token"
            )
        return found

    def unpack(self, packed: paddle.Tensor) -> paddle.Tensor:
        """[tokens, width] -> [batch, length, width], with zeros for padding."""
        width = packed.shape[1]
        if not self.is_full:
            padded = paddle.zeros([self.mask.size, width], packed.dtype)
            packed = paddle.scatter(padded, self._places, packed)
        return packed.reshape([self.batch, self.length, width])

    def split_heads(self, packed: paddle.Tensor, padding_is_zero: bool = False) -> paddle.Tensor:
        """[tokens, hidden] -> [batch, heads, length, head size]; padding is undefined, or zero if asked for.

        A row of the result is one head of one token, so picking rows unpacks and transposes at once. Paddle's transpose
        would need a copy, which takes ten times as long on the CPU.
        """
        size = packed.shape[1] // self.heads
        table = packed.reshape([-1, size])
        if padding_is_zero:
            picked = rows(table, self._heads_of_places_but_padding, zero=table.shape[0])
        else:
            picked = rows(table, self._heads_of_places)
        return picked.reshape([self.batch, self.heads, self.length, size])

    def merge_heads(self, heads: paddle.Tensor) -> paddle.Tensor:
        """[batch, heads, length, head size] -> [tokens, hidden]; padding is dropped."""
        size = heads.shape[3]
        return rows(heads.reshape([-1, size]), self._heads_of_tokens).reshape([self.tokens, self.heads * size])

    @cached_property
    def bias(self) -> paddle.Tensor | None:
        """The term that attention adds to its scores: 0 for tokens, ``MASKED`` for padding; None without padding.

        float32 [batch, heads, length, length] on the CPU, where adding a broadcast tensor takes 510 microseconds and
        one of equal shape 55 (32 x 12 x 18 x 18); [batch, 1, 1, length] elsewhere.
        """
        return self._bias(self.length)

    @cached_property
    def bias_of_firsts(self) -> paddle.Tensor | None:
        """The same for one query per row: float32 [batch, heads, 1, length] on the CPU."""
        return self._bias(1)

    def _bias(self, queries: int) -> paddle.Tensor | None:
        if self.is_full:
            return None
        bias = np.where(self.mask, np.float32(0), np.float32(MASKED))[:, None, None, :]
        if paddle.device.get_device() == "cpu":
            bias = np.ascontiguousarray(np.broadcast_to(bias, (self.batch, self.heads, queries, self.length)))
        return as_tensor(bias)

    @cached_property
    def _places(self) -> paddle.Tensor:
        return as_tensor(self.places)

    @cached_property
    def _heads_of_places(self) -> paddle.Tensor:
        """For each (row, head, column) the row of packed [tokens * heads, head size]: int64 [batch * heads * length].

        Padding refers to token 0. As keys it is masked, and as queries not used: no gradient comes back.
        """
        return as_tensor(self._heads_where().reshape(-1))

    @cached_property
    def _heads_of_places_but_padding(self) -> paddle.Tensor:
        """The same, but padding refers to the row behind the last one."""
        rows = np.where(self.mask[:, None, :], self._heads_where(), self.tokens * self.heads)
        return as_tensor(rows.reshape(-1))

    def _heads_where(self) -> np.ndarray:
        tokens = np.zeros(self.mask.size, np.int64)
        tokens[self.places] = np.arange(self.tokens)
        return tokens.reshape(self.batch, 1, self.length) * self.heads + np.arange(self.heads)[:, None]

    @cached_property
    def _heads_of_tokens(self) -> paddle.Tensor:
        """For each (token, head) the row of [batch * heads * length, head size]: int64 [tokens * heads]."""
        row_starts = self.places // self.length * (self.heads * self.length) + self.columns
        return as_tensor((row_starts[:, None] + np.arange(self.heads) * self.length).reshape(-1))
