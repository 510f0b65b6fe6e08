"""A script for a launcher: run onions of the catalogue in all ranks, and write down what came of them.

python -m paddle.distributed.launch --nproc_per_node 2 tests/distributed/catalogue.py OUT PIECES [NAME ...]

Every rank has a folder of its own. Rank R writes OUT/rank-R.json: name -> a digest of the arrays in the newest
checkpoint, or the refusal.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from onion.checkpointing import checkpoint
from onion.distributed import distributed
from onion.errors import OnionError
from onion.host import launch
from tests.onions import ONIONS

TRAIN_FIRST = ("example mean_teacher", "example siamese", "example distillation")
"""These train another network before, by a runner for one process."""

RUN = [name for name in ONIONS if name not in TRAIN_FIRST]


def outcome(name, folder, pieces):
    """Run an onion; return the digest of what it has saved at its end, or why it cannot be run."""
    kind = ONIONS[name]
    try:
        runner = distributed(kind.make(folder), pieces=pieces, exact=True, shard_optimizer=True)
    except OnionError as error:  # also of a training that makes what the onion needs
        return f"refused: {str(error).splitlines()[0]}"
    try:
        state = runner.run(passes=kind.passes, steps=kind.steps)
    except OnionError as error:
        return f"failed: {type(error).__name__}: {str(error).splitlines()[0]}"
    return f"{state.step} {digest(folder)}"


def digest(folder):
    """Return a digest of the arrays in the newest checkpoint."""
    if launch.rank() > 0:
        return "-"
    saved = checkpoint.newest(folder)
    found = hashlib.sha256()
    for name, own in sorted(saved.items.items()):
        for key, value in sorted(own.items()):
            if hasattr(value, "tobytes"):
                found.update(f"{name}/{key}".encode() + value.tobytes())
    return found.hexdigest()[:12]


if __name__ == "__main__":
    out, pieces, *names = sys.argv[1:]
    results = {}
    for name in names or RUN:
        folder = Path(out) / f"rank-{launch.rank()}" / name.replace(" ", "-")
        results[name] = outcome(name, folder, int(pieces))
        print(name, "->", results[name], flush=True)
    (Path(out) / f"rank-{launch.rank()}.json").write_text(json.dumps(results))
