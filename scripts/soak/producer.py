"""A process that puts samples in, whenever there is room: ``python -m scripts.soak.producer FOLDER``."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

from onion.online import SpoolWriter

SAMPLES_PER_WRITE = 400


def main(folder: str) -> None:
    draw = random.Random(3)
    with SpoolWriter(Path(folder, "samples.db"), "soak", block=math.inf) as writer:
        while True:
            writer.write([_sample(draw) for _ in range(SAMPLES_PER_WRITE)])


def _sample(draw: random.Random) -> object:
    if draw.random() < 0.001:
        return {"inputs": "of no use"}
    inputs = [draw.gauss(0, 1) for _ in range(4)]
    return {"inputs": inputs, "labels": int(sum(inputs) > 0)}


if __name__ == "__main__":
    main(*sys.argv[1:])
