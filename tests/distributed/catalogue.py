"""A script for a launcher: run onions of the catalogue, or of ``trainings``, in all ranks, and write what came of them.

python -m paddle.distributed.launch --nproc_per_node 2 tests/distributed/catalogue.py OUT PIECES [NAME ...]

Every rank has a folder of its own. Rank R writes OUT/rank-R.json: name -> the steps, and a digest of what it ends
with, or the refusal; rank 0 leaves checkpoints and logs in OUT/rank-0.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[2]))

from onion import NanGuard, ParameterUpdater, Runner
from onion.checkpointing import rng
from onion.device import to_arrays
from onion.distributed import distributed
from onion.errors import OnionError
from onion.host import launch
from tests.distributed.trainings import TRAININGS
from tests.onions import ONIONS, of_examples

KINDS = {**ONIONS, **TRAININGS}
RUN = Runner.run


def place(out, rank, name):
    """Return the folder of an onion."""
    return Path(out) / f"rank-{rank}" / name.replace(" ", "-").replace("'", "")


def outcome(name, folder, pieces):
    """Run an onion; return a digest of what it ends with, or why it cannot be run."""
    kind = KINDS[name]

    def together(runner, passes=None, steps=None, parent=None):
        """Run what a script runs before its onion, such as a test or another training."""
        return RUN(distributed(runner, pieces=pieces, exact=True), passes, steps, parent)

    try:
        with patch.object(of_examples, "RUN", together):
            runner = distributed(kind.make(folder), pieces=pieces, exact=True, shard_optimizer=True)
    except OnionError as error:
        return f"refused: {str(error).splitlines()[0]}"
    try:
        state = runner.run(passes=kind.passes, steps=kind.steps)
    except OnionError as error:
        return f"failed: {type(error).__name__}: {str(error).splitlines()[0]}"
    return f"{state.step} {digest(runner)}"


def digest(runner):
    """Return a digest of all arrays that the items of a runner hold, and of the random generators.

    But for the optimizers' state and a NanGuard's copy of it: each rank has a part, checkpoints have the whole.
    """
    found = hashlib.sha256(json.dumps(rng.capture()).encode())
    for item in (each for each in runner.walk() if not isinstance(each, ParameterUpdater | NanGuard)):
        for key, value in sorted(to_arrays(dict(item.state_dict())).items()):
            if hasattr(value, "tobytes"):
                found.update(f"{item.name}/{key}".encode() + value.tobytes())
    return found.hexdigest()[:12]


if __name__ == "__main__":
    out, pieces, *names = sys.argv[1:]
    results = {}
    for name in names or ONIONS:
        results[name] = outcome(name, place(out, launch.rank(), name), int(pieces))
        print(name, "->", results[name], flush=True)
    (Path(out) / f"rank-{launch.rank()}.json").write_text(json.dumps(results))
