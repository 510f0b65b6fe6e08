"""The decoded tags of an example."""

from __future__ import annotations

import attrs
import numpy as np


@attrs.frozen(eq=False)
class Tags:
    """The tags of the words that belong to an example.

    Attributes:
        numbers: int64 [words], of the tags.
        probabilities: float [words], the probability of each.
    """

    numbers: np.ndarray
    probabilities: np.ndarray

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, words: slice) -> Tags:
        return Tags(self.numbers[words], self.probabilities[words])
