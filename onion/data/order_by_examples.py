"""Batches of a fixed number of examples: the order of every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.data import order
from onion.data.order import Indices
from onion.errors import DataError


@attrs.define(eq=False)
class ByExamples:
    """Which examples each batch of a pass has.

    Attributes:
        size: how many examples there are.
        batch_size: of a batch, from 1.
        seed: of the random orders.
        shuffle: whether each pass has another order.
        drop_last: whether a last batch that is not full is left out.
        weights: ``[size]``: how often each is drawn. None: each comes once.
        lengths: ``[size]``: by which those of a batch are similar. None: they are not looked at, or not known yet.
        measured: finds them before the first pass. None: they are there, or not looked at.

    Raises:
        DataError: no batch would be left.
    """

    size: int
    batch_size: int
    seed: int
    shuffle: bool
    drop_last: bool
    weights: NDArray[np.float64] | None
    lengths: NDArray[np.integer] | None
    measured: Callable[[], NDArray[np.integer]] | None = None

    def __attrs_post_init__(self) -> None:
        if self.drop_last and self.size < self.batch_size:
            few = f"{self.size} examples do not fill one batch of {self.batch_size}"
            raise DataError(f"{few}, and drop_last=True leaves nothing; use a smaller batch_size")

    @property
    def settings(self) -> dict[str, Any]:
        """What the order depends on besides `seed`, `shuffle`, `drop_last` and `weights`."""
        by_length = self.lengths is not None or self.measured is not None
        return {"batch_size": self.batch_size, **({"by_length": True} if by_length else {})}

    def __len__(self) -> int:
        """How many batches a pass has."""
        return self.size // self.batch_size if self.drop_last else -(-self.size // self.batch_size)

    def batches(self, pass_id: int, start: int) -> Iterator[Indices]:
        """The numbers of the examples of each batch, ``int64 [batch]``, from batch ``start`` on."""
        return iter(self._plan(pass_id)[start:])

    def _plan(self, pass_id: int) -> list[Indices]:
        if self.lengths is None and self.measured is not None:
            self.lengths = self.measured()
        drawn = None if self.weights is None else order.weighted(self.weights, self.seed, pass_id)
        if self.lengths is not None:
            lengths = self.lengths if drawn is None else self.lengths[drawn]
            batches = order.bucketed(
                lengths, self.batch_size, self.seed, pass_id, drop_last=self.drop_last, shuffle=self.shuffle
            )
            return batches if drawn is None else [drawn[batch] for batch in batches]
        if drawn is None and self.shuffle:
            drawn = order.shuffled(self.size, self.seed, pass_id)
        if drawn is None:
            return order.batches_in_order(self.size, self.batch_size, self.drop_last)
        return order.cut(drawn, self.batch_size, self.drop_last)
