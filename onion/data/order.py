"""In which order a pass sees the examples: permutations, batches, batches of similar length.

Every order here is a pure function of its arguments. It neither reads nor moves the global generators of Python, NumPy
or Paddle, so a pass can be entered in the middle (resuming) by computing its order again.

An order is a list of index arrays, one a batch: ``int64 [batch]``. They are views of one array, so that a pass over a
million examples costs 8 MB and not a million Python integers. Only `buffered` has no indices: it is for streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Example = TypeVar("Example")

SHUFFLED, BATCHES, PADDLE, WEIGHTED, BUFFERED, REST, TOKENS, INTERLEAVED, TIES = range(9)
"""What random numbers of one seed and pass are drawn for: each purpose has its own. PADDLE is that of
`onion.data.paddle_loader`, TOKENS and TIES of `onion.data.order_by_tokens`. They stay as they are, since runs are
resumed by later versions."""

BLOCK = 4096
"""Random numbers that a shuffle buffer draws at a time."""

_END: Any = object()

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
    return _permutation(n, seed, pass_id, purpose=SHUFFLED)


def _permutation(n: int, seed: int, pass_id: int, purpose: int) -> Indices:
    # Sorting raw bits, not Generator.permutation: NumPy keeps the former the same from version to version and reserves
    # the right to change the latter (NEP 19). A checkpoint may be resumed with another NumPy than it was written with.
    bits: NDArray[np.uint64] = random_bits(seed, pass_id, purpose).random_raw(n)
    return _sorting(bits).astype(np.int64, copy=False)


def random_bits(seed: int, pass_id: int, purpose: int) -> np.random.Philox:
    """The random bits of a seed and a pass, for one purpose."""
    return np.random.Philox(np.random.SeedSequence(seed, spawn_key=(pass_id, purpose)))


def _sorting(bits: NDArray[np.uint64]) -> NDArray[np.intp]:
    """As ``np.argsort(bits, kind="stable")``, but several times as fast where the processor has the instructions."""
    order = np.argsort(bits)
    ranked = bits[order]
    # The algorithm decides only where numbers are equal: with 10^7 of them once in 400,000 passes.
    return np.argsort(bits, kind="stable") if (ranked[1:] == ranked[:-1]).any() else order


def interleaved(counts: Sequence[int], seed: int, pass_id: int) -> Indices:
    """Each number ``i`` of ``0 .. len(counts) - 1`` exactly ``counts[i]`` times, in random order.

    Args:
        counts: How often each number comes, from 0.
        seed: Any integer from 0.
        pass_id: The pass, from 0. Orders of different passes are independent of each other.

    Returns:
        ``int64 [sum(counts)]``; the same for the same arguments, on every machine and with every version of NumPy.
    """
    numbers = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    mixed: Indices = numbers[_permutation(len(numbers), seed, pass_id, purpose=INTERLEAVED)]
    return mixed


def weighted(weights: NDArray[np.floating], seed: int, pass_id: int) -> Indices:
    """As many examples as there are, drawn at random with replacement, each in proportion to its weight.

    This is what ``WeightedRandomSampler`` of torch and Paddle does with ``num_samples=len(weights)``. An example may
    come several times in a pass, and another one not at all.

    Args:
        weights: One number >= 0 an example, not all 0; an example of weight 0 is never drawn.
        seed: Any integer from 0.
        pass_id: The pass, from 0. The draws of different passes are independent of each other.

    Returns:
        ``int64 [examples]``; the same for the same arguments, on every machine and with every version of NumPy.
    """
    ends = np.cumsum(weights, dtype=np.float64)
    bits = random_bits(seed, pass_id, purpose=WEIGHTED).random_raw(len(ends))
    uniform = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53  # from 0, below 1
    found = np.searchsorted(ends, uniform * ends[-1], side="right")
    drawn: Indices = np.minimum(found, np.flatnonzero(weights)[-1]).astype(np.int64)  # a product may be rounded up
    return drawn


def balanced(labels: Sequence[Any] | NDArray[Any]) -> NDArray[np.float64]:
    """Weights with which each label is drawn equally often, whatever its share of the examples.

    Args:
        labels: The label of each example: strings or integers.

    Returns:
        ``float64 [examples]``: one divided by the number of examples with the same label.

    >>> balanced(["ham", "ham", "ham", "spam"])
    array([0.33333333, 0.33333333, 0.33333333, 1.        ])
    """
    _, numbers, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    weights: NDArray[np.float64] = 1.0 / counts[numbers]
    return weights


def buffered(examples: Iterable[Example], size: int, seed: int, pass_id: int) -> Iterator[Example]:
    """The examples of a stream in random order, of which at most `size` are held at a time.

    The next example is a random one of those held, and the next of the stream takes its place; the rest comes in random
    order at the end (``shuffle(buffer_size)`` of tf.data and Hugging Face's datasets). An example comes at most
    ``size - 1`` places earlier than in the stream, so a file sorted by label needs a buffer as large as itself.

    Args:
        examples: The stream of one pass.
        size: From 1, which changes nothing.
        seed: Any integer from 0.
        pass_id: The pass, from 0. The orders of different passes are independent of each other.

    Yields:
        Each example once; in the same order for the same arguments, on every machine and with every version of NumPy.
    """
    left = iter(examples)
    held = list(islice(left, size))
    for slot in _slots(size, seed, pass_id):
        example = next(left, _END)
        if example is _END:
            break
        yield held[slot]
        held[slot] = example
    yield from (held[place] for place in _permutation(len(held), seed, pass_id, purpose=REST))


def _slots(size: int, seed: int, pass_id: int) -> Iterator[int]:
    """Random numbers below `size`, without end."""
    generator = random_bits(seed, pass_id, purpose=BUFFERED)
    while True:
        yield from (generator.random_raw(BLOCK) % np.uint64(size)).tolist()


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
    return [batches[i] for i in _permutation(len(batches), seed, pass_id, purpose=BATCHES)]
