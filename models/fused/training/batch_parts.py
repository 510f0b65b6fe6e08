"""The rows of a batch that are computed together, with masks of their own for dropout."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import attrs
import numpy as np
import paddle

from onion.models import ops
from onion.models.packing import Packing

FEWEST = 64
"""Tokens below which a part of its own does not pay."""


@attrs.frozen(eq=False)
class Part:
    """Neighbouring rows of a batch.

    Attributes:
        packing: of these rows alone, without columns that are empty in all of them.
        start: their first token among the packed of the batch.
        stop: behind their last one.
        first: the first of the rows.
        random: what their masks are drawn from; None: nothing is dropped.
    """

    packing: Packing
    start: int
    stop: int
    first: int
    random: np.random.Generator | None

    def of_outputs(self, firsts_only: bool) -> slice:
        """Where its vectors stand among those that the layers give: one a token, or one a row."""
        return slice(self.first, self.first + self.packing.batch) if firsts_only else slice(self.start, self.stop)

    def mask(self, shape: list[int], probability: float) -> paddle.Tensor | None:
        """Draw a dropout mask, of zeros and the scale; None: nothing is dropped."""
        if self.random is None or probability == 0:
            return None
        return ops.as_tensor(ops.mask(self.random, shape, probability))


def masked(x: paddle.Tensor, mask: paddle.Tensor | None) -> paddle.Tensor:
    """Apply a dropout mask in place."""
    return x if mask is None else x.multiply_(mask)


def split(packing: Packing, count: int, seed: int | None) -> list[Part]:
    """Cut a batch into parts of about as many tokens each.

    Args:
        packing: of the batch.
        count: parts at most; small batches have fewer.
        seed: of the masks; None: nothing is dropped.
    """
    count = max(1, min(count, packing.batch, packing.tokens // FEWEST))
    return list(_cut(packing, count, seed))


def _cut(packing: Packing, count: int, seed: int | None) -> Iterator[Part]:
    ends = np.concatenate([[0], np.cumsum(packing.mask.sum(axis=1))])
    wished = ends[-1] * np.arange(count + 1) / count
    borders = np.unique([np.abs(ends - wish).argmin() for wish in wished])
    for number, (first, last) in enumerate(pairwise(borders)):
        random = None if seed is None else np.random.Generator(np.random.SFC64([seed, number]))
        yield Part(packing.between(first, last), int(ends[first]), int(ends[last]), int(first), random)
