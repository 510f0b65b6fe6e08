"""A process that writes samples: ``python -m scripts.online.producer KIND FOLDER SAMPLES PAUSE SEED``."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from scripts.online.sources import PLACES

HELD = "held"  # while this file is in the folder, the last lot is held back


def main(kind: str, folder: str, samples: str, pause: str, seed: str) -> None:
    """Write samples in lots of 1 to 200, with a pause in seconds between two."""
    place, draw = PLACES[kind](Path(folder)), random.Random(int(seed))
    begin, total = place.begin(), int(samples)
    while begin < total:
        end = min(total, begin + draw.randint(1, 200))
        while end == total and Path(folder, HELD).exists():
            time.sleep(0.05)
        place.put(range(begin, end))
        begin = end
        time.sleep(float(pause))


if __name__ == "__main__":
    main(*sys.argv[1:])
