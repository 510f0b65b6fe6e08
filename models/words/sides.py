"""The words of each text in a padded batch, which of a pair are two."""

from __future__ import annotations

import attrs
import numpy as np
import paddle

from onion.models.ops import as_tensor
from onion.models.packing import Ids
from onion.models.words.names import FIRST_WORD


@attrs.frozen(eq=False)
class Words:
    """The words of some texts, without special tokens.

    Attributes:
        ids: int64 [texts, longest], padded on the right.
        lengths: int64 [texts].
    """

    ids: paddle.Tensor
    lengths: np.ndarray

    @property
    def mask(self) -> paddle.Tensor:
        """float32 [texts, longest, 1], 1 for words and 0 for padding."""
        there = np.arange(self.ids.shape[1]) < self.lengths[:, None]
        return as_tensor(there[:, :, None].astype(np.float32))


def words_of(ids: Ids, types: Ids | None, mask: np.ndarray, sides: int, pad_id: int) -> Words:
    """Return the words of a padded batch.

    Args:
        ids: int64 [batch, length].
        types: int64 [batch, length], the number of the side of each token; not read for one side.
        mask: bool [batch, length], true for tokens.
        sides: texts of a row: 1, or 2 for pairs.
        pad_id: of the padding.

    Returns:
        The texts row by row, those of a row next to each other: [batch * sides, ...].
    """
    tokens = _array(ids)
    chosen = (mask & (tokens >= FIRST_WORD))[:, None, :]
    if sides > 1:
        of_side = np.zeros_like(tokens) if types is None else _array(types)
        chosen = chosen & (of_side[:, None, :] == np.arange(sides)[:, None])
    chosen = chosen.reshape(-1, tokens.shape[1])
    lengths = chosen.sum(axis=1)
    longest = max(1, int(lengths.max()))  # a text without words is one of padding
    order = np.argsort(~chosen, axis=1, kind="stable")[:, :longest]
    moved = np.take_along_axis(np.repeat(tokens, sides, axis=0), order, axis=1)
    moved[np.arange(longest) >= lengths[:, None]] = pad_id
    return Words(as_tensor(moved.astype(np.int64)), lengths)


def _array(ids: Ids) -> np.ndarray:
    return ids if isinstance(ids, np.ndarray) else ids.numpy()
