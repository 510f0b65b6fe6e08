"""Random numbers that are a function of seed, pass and example, so that no generator has a state to keep.

Source: SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators"), whose n-th number is
a mix of the seed and n times a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import attrs
import numpy as np
from numpy.typing import NDArray

GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def _mixed(number: int) -> int:
    """SplitMix64's mix of one number."""
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & MASK
    return number ^ (number >> 31)


def mixed_each(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's mix of an array, which is changed."""
    numbers ^= numbers >> np.uint64(30)
    numbers *= np.uint64(0xBF58476D1CE4E5B9)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(0x94D049BB133111EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers


@attrs.frozen
class Draws:
    """The random numbers of one example in one pass.

    >>> Draws.of(seed=0, pass_id=1, example=2).below(10, "segment") == Draws.of(0, 1, 2).below(10, "segment")
    True

    Attributes:
        key: of seed, pass and example.
    """

    key: int

    @classmethod
    def of(cls, seed: int, pass_id: int, example: int) -> Draws:
        """Return the numbers of an example, all from 0."""
        key = 0
        for each in (seed, pass_id, example):
            key = _mixed((key + each + 1) * GOLDEN & MASK)
        return cls(key)

    def bits(self, count: int, purpose: str) -> NDArray[np.uint64]:
        """Return random bits, ``uint64 [count]``.

        Args:
            count: how many; the first ones are the same for any count.
            purpose: what they are for; each purpose has numbers of its own.
        """
        start = _mixed((self.key + crc32(purpose.encode())) & MASK)
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN)
        return mixed_each(steps + np.uint64(start))

    def chances(self, count: int, purpose: str) -> NDArray[np.float64]:
        """Return uniform numbers from 0, below 1, ``float64 [count]``; see :meth:`bits`."""
        found: NDArray[np.float64] = (self.bits(count, purpose) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return found

    def chance(self, purpose: str) -> float:
        """Return one uniform number from 0, below 1."""
        return float(self.chances(1, purpose)[0])

    def below(self, limit: int, purpose: str) -> int:
        """Return an integer from 0, below ``limit``."""
        return int(self.chance(purpose) * limit)

    def order(self, count: int, purpose: str) -> Sequence[int]:
        """Return a random order of ``0 .. count - 1``."""
        found: list[int] = np.argsort(self.bits(count, purpose), kind="stable").tolist()
        return found
