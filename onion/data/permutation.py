"""A random permutation of which each place can be had without the others: nothing is drawn, sorted or kept.

It is the swap-or-not shuffle (Hoang, Morris and Rogaway, "An enciphering scheme based on a card shuffle", CRYPTO 2012):
in each round every place has a partner, and a bit of the round and the pair tells whether the two swap. It needs no
power of two, unlike a Feistel network. The bits are those of SplitMix64 (Steele, Lea and Flood, "Fast splittable
pseudorandom number generators", OOPSLA 2014): good enough to shuffle, no secret.

All is integer arithmetic modulo 2^64, so the numbers are the same on every machine and with every version of NumPy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

ROUNDS = 24
"""Of the shuffle. It stays as it is, since runs are resumed by later versions."""

GOLDEN = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: the step of SplitMix64."""


def permuted(places: Words, sizes: Words, keys: Words) -> Words:
    """Where each place goes in the permutation of ``0 .. size - 1`` that its key stands for.

    Args:
        places: ``uint64 [n]``, each below its size.
        sizes: ``uint64 [n]``, from 1.
        keys: ``uint64 [n]``. Those of different permutations should be random; see `mixed`.

    Returns:
        ``uint64 [n]``: for one size and key, each place of ``0 .. size - 1`` goes to another one of them.
    """
    for number in range(ROUNDS):
        turn = mixed(keys + np.uint64(number * GOLDEN % 2**64))
        partners = turn % sizes + (sizes - places)
        partners = np.where(partners >= sizes, partners - sizes, partners)
        swap = mixed(turn ^ np.maximum(places, partners) * np.uint64(GOLDEN)) >> np.uint64(63)
        places = np.where(swap.astype(bool), partners, places)
    return places


def mixed(words: Words) -> Words:
    """Random bits as a function of each word: the finaliser of SplitMix64, a bijection.

    Args:
        words: ``uint64 [n]``.

    Returns:
        ``uint64 [n]``.
    """
    words = words + np.uint64(GOLDEN)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Words = words ^ (words >> np.uint64(31))
    return found


def uniform(words: Words) -> NDArray[np.float64]:
    """A number from 0 and below 1 for each word; `mixed` ones give random numbers.

    Args:
        words: ``uint64 [n]``.

    Returns:
        ``float64 [n]``.
    """
    found: NDArray[np.float64] = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return found
