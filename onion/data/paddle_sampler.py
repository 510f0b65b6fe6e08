"""The order that a `paddle.io.BatchSampler` gives a pass, as a function of seed and pass.

Paddle's samplers draw from the global generators whenever they are iterated, so a pass could not be entered in the
middle. Here the same samplers draw from a generator made of ``(seed, pass)``, and the global ones stay as they are.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from onion.data.order import shuffled

PURPOSE = 2
"""Tells these draws from those of `onion.data.order`, which are made of the same seeds."""

PLAIN = (list, tuple, range, np.ndarray)
"""What is no sampler of Paddle's and gives the same numbers each time all the same."""


def draws_again(sampler: Any) -> bool:
    """Whether a batch sampler, iterated twice from one state of numpy's generator, gives the same batches.

    That is known of Paddle's own classes and of plain sequences. Anybody else's may keep a state of its own.
    """
    io = sys.modules["paddle"].io
    if type(sampler) is not io.BatchSampler:
        return type(sampler) in (io.DistributedBatchSampler, *PLAIN)
    inner = sampler.sampler
    if type(inner) is io.RandomSampler:
        return not inner.generator  # an iterator of the user's, which is used up
    return type(inner) in (io.SequenceSampler, io.WeightedRandomSampler, io.SubsetRandomSampler, *PLAIN)


def order_of(sampler: Any, seed: int, pass_id: int) -> list[list[int]]:
    """The numbers of the examples of each batch of a pass; of a sampler that `draws_again`.

    A DistributedBatchSampler shuffles by its epoch alone, which here is the pass: all ranks have to agree.
    """
    ours = copy(sampler)
    tell_pass(ours, pass_id)
    inner: Any = getattr(ours, "sampler", None)
    if type(inner) is sys.modules["paddle"].io.SubsetRandomSampler:
        # It draws from Paddle's generator, which cannot be put back on the CPU of Paddle 2.6.
        ours.sampler = [inner.indices[i] for i in shuffled(len(inner.indices), seed, pass_id).tolist()]
    with seeded(seed, pass_id):
        return [list(map(int, batch)) for batch in ours]


def tell_pass(sampler: Any, pass_id: int) -> None:
    """Tell a sampler which pass it is drawn for, by ``set_epoch``, if it has that."""
    if hasattr(sampler, "set_epoch"):
        sampler.set_epoch(pass_id)


@contextmanager
def seeded(seed: int, pass_id: int) -> Iterator[None]:
    """Have Python's and numpy's global generators begin where (seed, pass) says; then put them back."""
    before = random.getstate(), np.random.get_state()
    words = np.random.SeedSequence(seed, spawn_key=(pass_id, PURPOSE)).generate_state(8)
    random.seed(words.tobytes())
    np.random.seed(words)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
