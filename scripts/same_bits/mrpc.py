"""A script for a launcher: fine-tune MiniLM on an excerpt of MRPC, by ``fine_tune`` and ``distributed``.

python -m paddle.distributed.launch --nproc_per_node 2 scripts/same_bits/mrpc.py OUT DATA exact|plain

Rank R writes OUT/rank-R.json as ``tests/distributed/catalogue.py`` does, and saves in OUT/rank-R/mrpc. Beside its name
is how far the weights have moved.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from onion import GradientMachine, Runner
from onion.distributed import distributed
from onion.host import launch
from onion.tasks.finetune.fine_tune import fine_tune
from tests.distributed.catalogue import digest, place

PIECES, PASSES = 8, 2

SETTINGS: dict[str, Any] = {
    "encoder": "minilm",
    "batch_size": 16,
    "learning_rate": 1e-4,
    "test_every": 8,
    "log_every": 4,
    "test_batch_size": 16,
    "passes": PASSES,
}
"""With the defaults: AdamW, clipping to 1, dropout 0.1, a linear schedule with warm-up."""

MAX_LENGTH = 64


def weights(runner: Runner) -> dict[str, np.ndarray]:
    """Return a copy of the weights of a training."""
    return {name: tensor.numpy() for name, tensor in runner[GradientMachine].state_dict().items()}


def distance(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> float:
    """Return the Euclidean distance between weights."""
    return float(np.sqrt(sum(np.square(one[name] - other[name], dtype=np.float64).sum() for name in one)))


def main(out: Path, data: Path, exact: bool) -> None:
    """Train, and write down what came of it."""
    folder = place(out, launch.rank(), "mrpc")
    files = data / "train.tsv", data / "dev.tsv"
    training = fine_tune("classification", *files, folder, options={"max_length": MAX_LENGTH}, **SETTINGS)
    runner = distributed(training, pieces=PIECES, exact=exact, seed=1)
    before = weights(runner)
    state = runner.run(passes=PASSES)
    found = {"mrpc": f"{state.step} {digest(runner)}", "moved": distance(weights(runner), before)}
    (out / f"rank-{launch.rank()}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), exact=sys.argv[3] == "exact")
