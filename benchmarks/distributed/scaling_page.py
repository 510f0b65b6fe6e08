"""``make figures``: docs/distributed_scaling.md, from the calculation of scaling.py.

python -m benchmarks.distributed.scaling_page
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.distributed.scaling import (
    BASE,
    BATCH,
    DISK,
    EVERY,
    LARGE,
    LATENCY,
    NETWORKS,
    NVLINK,
    PUBLISHED,
    RANKS_PER_MACHINE,
    SIZES,
    STATE,
    USUAL,
    Model,
    measured_channel,
    share,
    step,
)
from benchmarks.frame import ROOT
from benchmarks.frame.tables import table
from onion.checkpointing.atomic_files import replace_file

PAGE = ROOT / "docs" / "distributed_scaling.md"

TEXT = """\
# 8 to 1,000 ranks, on paper

A calculation, not a measurement: onion has run in up to eight processes of one machine. It says what to expect, and
what to change first at each size. `make figures` makes the page again (`benchmarks/distributed/scaling.py`).

## What is assumed

- **Computation.** BERT-large learns 580 sequences of 128 tokens a second on an A100 of 80 GB in mixed precision, as
  NVIDIA
  [measured](https://github.com/NVIDIA/DeepLearningExamples/tree/master/PyTorch/LanguageModeling/BERT#training-performance-results)
  (one GPU, PyTorch). BERT-base: as many times faster as its layers have fewer parameters (85 for 302 million). Each
  rank has {batch} sequences a step, however many ranks there are.
- **Gradients** are summed as 32 bits: 110 and 340 million parameters ([Devlin et al.
  2018](https://arxiv.org/abs/1810.04805)), {gradients:.2f} GB for BERT-large, in buckets of 25 MiB, after the
  backward pass.
- **Network.** Machines of {machine} GPUs, whose network they share; {nvlink:.0f} GB/s between GPUs of a machine
  (NVLink 3, what NCCL's all-reduce reaches). A message takes {latency:.0f} µs. An all-reduce is a ring, 2 (n - 1) /
  n times the bytes, or a tree with 2 log2(n) messages where that is faster
  ([NCCL](https://developer.nvidia.com/blog/massively-scale-deep-learning-training-nccl-2-4/) chooses likewise).
- **Exact mode** halves and doubles ([Rabenseifner 2004](https://doi.org/10.1007/978-3-540-24685-5_1)): as many
  bytes as a ring, but a rank gives and takes one after the other, which costs twice the time. It needs a power of
  two of ranks; for 1,000 it is calculated with 1,024.
- **Control channel.** Rank 0 hears all others and answers them, twice a step. The time of its processor
  was [measured](../benchmarks/results.md) with 1,000 connections on one machine: {micro:.0f} µs
  a rank.
- **Checkpoints.** Rank 0 writes weights and two moments, {state:.1f} GB for BERT-large, at {disk:.0f} GB/s, every
  {every:,} steps, while all wait (`Saver(async_save=False)`).
- **Data.** A rank reads its own {batch} examples of 1 KiB a step, over the network. It holds the order of the pass:
  16 bytes a row of the whole data.

As a check: the same formulas give {checked:,.0f} sequences a second for BERT-large on 256 such GPUs in 32 machines
with 200 Gbit/s a GPU, 256 sequences each, gradients of 16 bits, sums after the backward pass. NVIDIA measured
{published:,}, with sums during it; with all of that hidden the formulas give {hidden:,.0f}.

## A step

Machines with {usual} Gbit/s; milliseconds.

{steps}

## How much of the time GPUs compute

Percent, by the network of a machine. "During" is what would be left if sums ran during the backward pass, as
`paddle.DataParallel` does on GPUs.

{shares}

## What happens once

BERT-large; seconds. Start: rank 0 accepts one connection after another (2 ms each, assumed), then gives its parameters
to all. Resumption: rank 0 reads the checkpoint and gives it to all, over the network of its machine.

{once}

## What limits, and what one would change

- **8 ranks, one machine.** Computation. NVLink makes sums cheap, and everything else is below them.
- **16 and more.** The sums, as soon as a network is between the machines: with 10 or 25 Gbit/s they take most of
  the time, at any number of ranks, since a ring sends the same bytes from each. In this order: a larger batch or
  `Accumulate`, which sums once per several batches; gradients of 16 bits; sums during the backward pass.
- **256.** The same. In exact mode a rank should give and take at the same time, which would halve its sums. Nothing
  that all ranks share is near its limit.
- **1,000.** The control channel becomes visible: {control:.0f} ms a step, more than saving. A tree of the channel,
  in which one rank of each machine hears its neighbours, would leave rank 0 125 connections. What each rank says on
  its own in every step (`Accumulate` with weights) is passed on to all: 1,000 messages to 1,000 ranks, some 30 MB a
  step; sums of such weights should go into the sums of the gradients there. Rank 0 needs 1,000 open files more
  (`ulimit -n`, often 1,024).
- **Checkpoints** cost {saving:.0f} ms a step at most; with `async_save`, next to nothing. Parts written by each
  rank would matter for networks of billions of parameters, which this is not made for.
- **Data.** Reading is small beside all else. The order of a pass is not: 100 million rows take 1.6 GB of each rank,
  12.8 GB of a machine. Data of that size are a stream (`--stream`), or an order that is drawn in parts.
"""


def page(channel: Mapping[int, float]) -> str:
    ranks, batch, published = PUBLISHED
    halves = Model("", LARGE.parameters / 2, LARGE.examples_a_second)
    alone = step(halves, ranks, 200 * RANKS_PER_MACHINE, exact=False, channel=channel, batch=batch)
    largest = step(LARGE, max(SIZES), USUAL, exact=False, channel=channel)
    return TEXT.format(
        batch=BATCH,
        gradients=LARGE.gradients / 1e9,
        machine=RANKS_PER_MACHINE,
        nvlink=NVLINK / 1e9,
        latency=LATENCY * 1e6,
        micro=1e6 * channel[max(channel)] / max(channel),
        state=LARGE.parameters * STATE / 1e9,
        disk=DISK / 1e9,
        every=EVERY,
        checked=ranks * batch / (alone.compute + alone.sums),
        hidden=ranks * batch / alone.compute,
        published=published,
        usual=USUAL,
        steps=table(("", "ranks", *COLUMNS), steps(channel)),
        shares=table(("", "ranks", *(f"{network} Gbit/s" for network in NETWORKS)), shares(channel)),
        once=table(("ranks", "start", "resumption"), once()),
        control=1e3 * largest.control,
        saving=1e3 * largest.saving,
    )


COLUMNS = ("computation", "sums", "control", "saving", "data", "step", "GPUs compute", "most of the rest")


def steps(channel: Mapping[int, float]) -> Iterator[list[str]]:
    """Give a line for each model, mode and number of ranks."""
    for model, exact in ((BASE, False), (LARGE, False), (LARGE, True)):
        for ranks in SIZES:
            found = step(model, ranks, USUAL, exact, channel)
            parts = [f"{1e3 * part:.1f}" for part in (*vars(found).values(), found.whole)]
            name = f"{model.name}, exact" if exact else model.name
            yield [name, f"{ranks:,}", *parts, f"{found.efficiency:.0%}", found.bottleneck]


def shares(channel: Mapping[int, float]) -> Iterator[list[str]]:
    """Give a line for each model, way to sum, and number of ranks."""
    for model in (BASE, LARGE):
        for name, exact, during in (("plain", False, False), ("exact", True, False), ("plain, during", False, True)):
            for ranks in SIZES:
                each = [share(step(model, ranks, network, exact, channel), during) for network in NETWORKS]
                yield [f"{model.name}, {name}", f"{ranks:,}", *(f"{100 * value:.0f}" for value in each)]


def once() -> Iterator[list[str]]:
    """Give the seconds of a start and of a resumption for each number of ranks."""
    for ranks in SIZES:
        bandwidth = NVLINK if ranks <= RANKS_PER_MACHINE else USUAL * 1e9 / 8
        met = ranks * 2e-3
        start = met + LARGE.gradients / bandwidth
        saved = LARGE.parameters * STATE
        yield [f"{ranks:,}", f"{start:.1f}", f"{start + saved / DISK + saved / bandwidth:.1f}"]


def main() -> None:
    """Write the page."""
    replace_file(PAGE, page(measured_channel()).encode())


if __name__ == "__main__":
    main()
