"""In which order a pass sees the examples: permutations, batches, batches of similar length.

Every order here is a pure function of its arguments. It neither reads nor moves the global generators of Python, NumPy
or Paddle, so a pass can be entered in the middle (resuming) by computing its order again.

An order is a list of index arrays, one a batch: ``int64 [batch]``. They are views of one array, so that a pass over a
million examples costs 8 MB and not a million Python integers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

MAX_WINDOW = 100
"""Most batches in a window of `bucketed`, within which examples are sorted by length. More means less padding, but
batches that consist of similar examples in every pass."""
MIN_WINDOWS = 4
"""Fewest windows of a shuffled pass, so that with few examples, too, each meets others in every pass."""


def shuffled(n: int, seed: int, pass_id: int) -> Indices:
    """A random permutation of ``0 .. n - 1``.

    Args:
        n: How many examples there are.
        seed: Any integer from 0.
        pass_id: The pass, from 0. Orders of different passes are independent of each other.

    Returns:
        ``int64 [n]``; the same for the same arguments, on every machine and with every version of NumPy.
    """
    return _permutation(n, seed, pass_id, purpose=0)


def _permutation(n: int, seed: int, pass_id: int, purpose: int) -> Indices:
    # Sorting raw bits, not Generator.permutation: NumPy keeps the former the same from version to version and reserves
    # the right to change the latter (NEP 19). A checkpoint may be resumed with another NumPy than it was written with.
    generator = np.random.Philox(np.random.SeedSequence(seed, spawn_key=(pass_id, purpose)))
    return _sorting(generator.random_raw(n)).astype(np.int64, copy=False)


def _sorting(bits: NDArray[np.uint64]) -> NDArray[np.intp]:
    """As ``np.argsort(bits, kind="stable")``, but several times as fast where the processor has the instructions."""
    order = np.argsort(bits)
    ranked = bits[order]
    # The algorithm decides only where numbers are equal: with 10^7 of them once in 400,000 passes.
    return np.argsort(bits, kind="stable") if (ranked[1:] == ranked[:-1]).any() else order


def batches_in_order(n: int, batch_size: int, drop_last: bool = False) -> list[Indices]:
    """Batches of ``0 .. n - 1`` as they come.

    Args:
        n: How many examples there are.
        batch_size: Examples in a batch, from 1.
        drop_last: Leave out the last batch where it is not full.
    """
    return cut(np.arange(n, dtype=np.int64), batch_size, drop_last)


def cut(order: Indices, batch_size: int, drop_last: bool = False) -> list[Indices]:
    """Cut an order into batches; the arguments are those of `batches_in_order`."""
    end = len(order) - len(order) % batch_size if drop_last else len(order)
    return [order[start : start + batch_size] for start in range(0, end, batch_size)]


def bucketed(
    lengths: Sequence[int] | NDArray[np.integer],
    batch_size: int,
    seed: int = 0,
    pass_id: int = 0,
    drop_last: bool = False,
    shuffle: bool = True,
) -> list[Indices]:
    """Batches of examples of similar length, so that little of a padded batch is padding.

    The examples are shuffled, cut into windows of `MAX_WINDOW` batches (fewer if that would not give `MIN_WINDOWS`
    windows), sorted by length within each window, cut into batches, and the batches are shuffled. Two examples
    therefore meet in one pass and not in the next.

    Args:
        lengths: One length an example, in any unit.
        batch_size: Examples in a batch, from 1.
        seed: Any integer from 0.
        pass_id: The pass, from 0.
        drop_last: Leave out as many examples as do not fill a batch; random ones, so that it is not always the longest.
            Without `shuffle` the last ones are left out.
        shuffle: Without it the windows are cut and stay as the examples come; the order is the same in every pass.

    Returns:
        A list of ``int64 [batch]``. Each example occurs exactly once, except those left out by `drop_last`.
    """
    size = np.asarray(lengths)
    n = len(size)
    order = shuffled(n, seed, pass_id) if shuffle else np.arange(n, dtype=np.int64)
    if drop_last:
        order = order[: n - n % batch_size]
    most = max(1, min(MAX_WINDOW, n // (MIN_WINDOWS * batch_size))) if shuffle else MAX_WINDOW
    batches: list[Indices] = []
    for window in cut(order, most * batch_size):
        batches += cut(window[np.argsort(size[window], kind="stable")], batch_size)
    if not shuffle:
        return batches
    return [batches[i] for i in _permutation(len(batches), seed, pass_id, purpose=1)]
