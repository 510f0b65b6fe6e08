"""The things that grow, their sizes, and why a line is not straight."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """One thing that grows while all others stay.

    Attributes:
        name: as sides know it.
        what: is measured, for the table.
        sizes: from the smallest.
        why: the line is as it is.
        module: the side that measures it.
        unit: of the times, and ``scale``: that many of them are a second.
    """

    name: str
    what: str
    sizes: tuple[int, ...]
    why: str
    module: str = "benchmarks.growth.encoder"
    unit: str = "ms"
    scale: float = 1e3


LOOPS = "benchmarks.growth.loops"
AXES = (
    Axis(
        "batch",
        "a training step by batch size",
        (1, 2, 4, 8, 16, 32, 64, 128),
        "a straight line above a fixed part: AdamW and clipping go over all parameters, however small the batch",
    ),
    Axis(
        "length",
        "a training step by length",
        (16, 32, 64, 128, 256, 512),
        "a straight line above the same fixed part, until attention, whose scores grow with the square, is most of it; "
        "at 512 one array of scores has 67 MB, and the C library gives such memory back to the system and takes it "
        "anew in many steps (page faults)",
    ),
    Axis(
        "layers",
        "a training step by layers",
        (1, 2, 4, 8, 12),
        "a straight line above what the embeddings and their part of AdamW cost",
    ),
    Axis(
        "width",
        "a training step by width",
        (128, 256, 512, 768),
        "products grow with the square (4 per doubling), all else with the width (2); narrow ones are mostly the else",
    ),
    Axis(
        "tasks",
        "a batch of a TaskSampler over a MultiHead by tasks",
        (1, 2, 4, 8, 16, 32, 64),
        "a straight line above the tiny network: a choice goes over all tasks, since a strategy may weigh each anew",
        LOOPS,
        "µs",
        1e6,
    ),
    Axis(
        "rings",
        "a batch by rings that do nothing",
        (10, 30, 100, 300, 1000),
        "two straight lines: Python keeps the frames of nested calls in pieces of 16 KiB, here one for some 80 rings, "
        "and asks the system for every further one anew in each batch",
        LOOPS,
        "µs",
        1e6,
    ),
)
ROWS = (10**3, 10**4, 10**5, 10**6, 10**7)
WHY_ROWS = (
    "fixed costs for few rows; for many a little more than a straight line: a sort of one random number a row, and a "
    "checksum of all files"
)
WHY_MEMORY = (
    "the features stay on the disk, in files that are mapped; what grows is the order of the pass and the lengths that "
    "it is made by, 8 bytes a row each, and the batches cut out of it"
)
