"""A script for a launcher: learn from a spool in all ranks, which get a signal if they wait for samples in vain.

python -m paddle.distributed.launch --nproc_per_node 2 tests/distributed/stream_job.py '{"out": ..., "place": ...}'

Rank R writes OUT/rank-R.json at its end: counts, the digest of the weights, or the error with which it ended.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from onion import Observer, Runner, Saver, Signals
from onion.distributed import distributed
from onion.host import launch
from onion.online import Journal, Spool, StreamProvider
from onion.online.learning.drift import DriftDetector
from onion.online.learning.progressive_validation import ProgressiveValidation
from tests.distributed.job import digest
from tests.onions.parts import Network, learning, seed

PASS, PASSES = 35, 2  # samples: batches of 16, 16 and 3, of which one of four pieces has none


class Watched(Spool):
    """A spool that sends a signal to a rank when it has been found empty a few times, while all wait."""

    def __init__(self, path, out, rank):
        super().__init__(path)
        self._out, self._rank, self._dry = out, rank, 0

    def read(self, n, timeout):
        found = super().read(n, timeout)
        self._dry += not found
        if self._dry == 3 and not found:
            os.kill(int((self._out / f"pid-{self._rank}").read_text()), signal.SIGTERM)
        return found


def prepared(sample):
    return {name: np.asarray(value, "float32") for name, value in sample.items()}


def squared(outputs, batch):
    return ((outputs - batch["y"]) ** 2)[:, 0]


def main(out, place, waits=1):
    """Learn all samples, and write down what came of it.

    Args:
        out: the folder for rank-R.json.
        place: has samples.db, and gets the checkpoints.
        waits: the rank that gets a signal when samples are missing.
    """
    out, place = Path(out), Path(place)
    (out / f"pid-{launch.rank()}").write_text(str(os.getpid()))
    seed(5)
    network = Network()
    values, prepares = [], []

    def prepare(sample):
        prepares.append(sample)
        return prepared(sample)

    source = Watched(place / "samples.db", out, waits)
    provider = StreamProvider(source, 16, pass_every=PASS, max_wait=3600, prepare=prepare)
    test = ProgressiveValidation(network, {"error": squared}, every=2)
    items = [
        Signals(),
        Saver(place / "run", every=3),
        Journal(),
        Observer(on_batch_end=lambda state: values.append(test.latest["error"].tolist())),
        provider,
        test,
        DriftDetector(lambda state: state.report({"drift": state.step}), test.of("error"), change="both"),
        *learning(network),
    ]
    found = {"rank": launch.rank()}
    try:
        state = distributed(Runner(*items), pieces=4, exact=True, seed=3).run(passes=PASSES)
        found |= {"step": state.step, "metrics": state.metrics, "values": values[-1], "weights": digest(network)}
        found |= {"samples": provider.log_values()["examples"], "rejected": provider.rejected_count}
    except BaseException as error:
        found |= {"error": f"{type(error).__name__}: {error}"}
        raise
    finally:
        (out / f"rank-{launch.rank()}.json").write_text(json.dumps({**found, "prepared": len(prepares)}))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
