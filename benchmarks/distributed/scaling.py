"""How long a step would take with 8 to 1,000 ranks, on paper; the page of it is made by scaling_page.py.

Only the control channel was measured (benchmarks/channel.py); the sources of all else are in the page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.channel import BUSY, RANKS, SAME, name_of
from benchmarks.frame.section import MEASURED, read
from onion.distributed.sums import BUCKET

SIZES = (8, 16, 64, 256, 1000)
NETWORKS = (10, 25, 100, 200)
"""Of a machine, in Gbit/s."""
USUAL = 100

RANKS_PER_MACHINE = 8
NVLINK = 230e9
"""Bytes a second that a GPU sends to others of its machine: the bus bandwidth that NCCL reaches on a DGX A100."""
LATENCY = 10e-6
"""Seconds of a message between two machines, with what its start costs."""
FLOAT = 4
STATE = 3 * FLOAT
"""Bytes of a parameter in a checkpoint: the weight and AdamW's two moments."""
DISK = 1e9
"""Bytes a second."""
EVERY = 1000
"""Steps from one checkpoint to the next."""
BATCH = 64
"""Examples of a rank, whatever the number of ranks; of 128 tokens."""
EXAMPLE = 1024
"""Bytes of an example that are read: ids and types of 128 tokens, 32 bits each."""
ROW = 16
"""Bytes of memory that a rank has for each row of the data: its place in the order of the pass, and its length."""
EXCHANGES = 2
"""Of the control channel in a step: one before the batch, one before the sum."""
BACKWARD = 2 / 3
"""The share of the computation that is the backward pass, during which sums could be under way."""


@dataclass(frozen=True)
class Model:
    """A network and how fast a single GPU learns with it, in examples a second."""

    name: str
    parameters: float
    examples_a_second: float

    @property
    def gradients(self) -> float:
        """Return the bytes of all gradients."""
        return self.parameters * FLOAT


LARGE = Model("BERT-large", 340e6, 580)
BASE = Model("BERT-base", 110e6, 580 * 302 / 85)
"""The parameters of the layers, without the embeddings, are 302 and 85 million: so much more is computed."""

PUBLISHED = 256, 256, 138_294
"""Ranks, examples of each a step, and the examples a second that NVIDIA has measured of BERT-large."""


@dataclass(frozen=True)
class Step:
    """The seconds of the parts of a step, one after the other."""

    compute: float
    sums: float
    control: float
    saving: float
    reading: float

    @property
    def whole(self) -> float:
        return sum(vars(self).values())

    @property
    def efficiency(self) -> float:
        """Return the share of the time in which GPUs compute."""
        return self.compute / self.whole

    @property
    def bottleneck(self) -> str:
        """Return what takes most of the time that is not computation."""
        names = {
            "the sums": self.sums,
            "the control channel": self.control,
            "saving": self.saving,
            "data": self.reading,
        }
        return max(names, key=names.__getitem__)


def all_reduce(size: float, ranks: int, gigabits: float) -> float:
    """Return the seconds of a sum over all ranks: a ring or a tree, whichever is faster, as NCCL chooses.

    A ring sends ``2 (n - 1) / n`` times the bytes from each rank to the next, in ``2 (n - 1)`` messages a bucket; it
    enters and leaves each machine once. A tree sends twice the bytes, in ``2 log2(n)`` messages.
    """
    bandwidth = NVLINK if ranks <= RANKS_PER_MACHINE else min(NVLINK, gigabits * 1e9 / 8)
    buckets = math.ceil(size / BUCKET)
    ring = 2 * (ranks - 1) / ranks * size / bandwidth + 2 * (ranks - 1) * LATENCY * buckets
    tree = 2 * size / bandwidth + 2 * math.log2(ranks) * LATENCY * buckets
    return min(ring, tree)


def exact_sum(size: float, ranks: int, gigabits: float) -> float:
    """Return the seconds of the sum of exact mode (``tree_reduced``), for the next power of two of ranks.

    In each of log2(n) levels a rank gives half of what it has left and takes as much, one after the other, and the same
    on the way back. The levels within a machine come first, so of its ranks each has an eighth left for the network,
    which they share.
    """
    levels = math.ceil(math.log2(ranks))
    inner = min(levels, int(math.log2(RANKS_PER_MACHINE)))
    inside = (1 - 0.5**inner) * size
    outside = (0.5**inner - 0.5**levels) * size * RANKS_PER_MACHINE
    one_way = inside / NVLINK + outside / (gigabits * 1e9 / 8)
    return 2 * 2 * one_way + 2 * 2 * levels * LATENCY * math.ceil(size / BUCKET)


def step(
    model: Model, ranks: int, gigabits: float, exact: bool, channel: Mapping[int, float], batch: int = BATCH
) -> Step:
    """Return the parts of a step.

    Args:
        model: what learns.
        ranks: how many.
        gigabits: a second, of each machine's network.
        exact: whether sums are made in exact mode.
        channel: number of ranks -> seconds of rank 0 for an exchange.
        batch: examples of a rank.
    """
    sums = (exact_sum if exact else all_reduce)(model.gradients, ranks, gigabits)
    return Step(
        compute=batch / model.examples_a_second,
        sums=sums,
        control=EXCHANGES * (exchange(ranks, channel) + 2 * LATENCY),
        saving=model.parameters * STATE / DISK / EVERY,
        reading=batch * EXAMPLE * min(ranks, RANKS_PER_MACHINE) / (gigabits * 1e9 / 8),
    )


def exchange(ranks: int, channel: Mapping[int, float]) -> float:
    """Return the seconds of rank 0 for an exchange: of the next number of ranks that was measured, as a share."""
    measured = next(each for each in sorted(channel) if each >= ranks)
    return channel[measured] * ranks / measured


def measured_channel(folder: Path = MEASURED) -> dict[int, float]:
    """Return number of ranks -> seconds of rank 0's processor for an exchange."""
    medians = {figure.what: figure.median for figure in read(folder / "channel.json").figures}
    return {ranks: medians[f"{name_of(ranks, SAME)}: {BUSY}"] / 1e3 for ranks in RANKS}


def share(found: Step, during: bool) -> float:
    """Return the share of a step in which GPUs compute; ``during``: with sums during the backward pass."""
    hidden = min(found.sums, BACKWARD * found.compute) if during else 0.0
    return found.compute / (found.whole - hidden)
