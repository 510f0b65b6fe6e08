"""A script for a launcher: train a small network in all ranks, with some trouble on one of them.

python -m paddle.distributed.launch --nproc_per_node 2 tests/distributed/job.py '{"out": ..., ...}'

The argument is JSON: see ``main``. Rank R writes OUT/rank-R.json at its end: counters, figures, the digest of the
weights, the bytes of the optimizer's state, or the error with which it ended.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from onion import DataProvider, ParameterUpdater, Runner, RunnerItem, Saver, Signals, SplitOnMemoryError, Tester
from onion.distributed import distributed
from onion.host import launch
from onion.testing import toy_examples
from tests.onions.parts import Network, adamw, learning, seed, tested

EXAMPLES = toy_examples(67)  # batches of 16: four full ones and one of three


class Trouble(RunnerItem):
    """Do something on the way out of a step."""

    passive = True

    def __init__(self, step, what):
        self.step, self.what = step, what

    def on_batch(self, state):
        yield
        if state.step == self.step:
            self.what(state)


class Reached(RunnerItem):
    """Note the last step that was finished."""

    passive = True
    step = 0

    def on_batch(self, state):
        yield
        self.step = state.step


class Blocked(RunnerItem):
    """Let a checkpoint not be written until the run is about to leave."""

    passive = True

    def __init__(self, place):
        self.place = place

    def initialize(self, state):
        self.place.touch()
        yield
        self.place.unlink()


def fail(state):
    raise ValueError("trouble")


TROUBLES = {
    "kill": lambda state: os.kill(os.getpid(), signal.SIGKILL),
    "terminate": lambda state: os.kill(os.getpid(), signal.SIGTERM),
    "stop": lambda state: state.stop("enough"),
    "stop the pass": lambda state: state.stop_pass("enough of this pass"),
    "fail": fail,
}


class Broken(list):
    """Examples that cannot be read any more on this rank, after a while."""

    asked = 0

    def __getitem__(self, index):
        self.asked += 1
        if self.asked > 20:
            raise OSError("the disk of this rank is broken")
        return super().__getitem__(index)


def hungry(times):
    """Return a hook of a network that is out of memory at first."""
    left = [times]

    def before(layer, inputs):
        if left[0]:
            left[0] -= 1
            raise MemoryError("(ResourceExhausted) out of memory")

    return before


def main(out, trouble=None, rank=1, step=7, passes=2, pieces=4, exact=True, saves=None, lr=0.02, shard=False):
    """Train, and write down what came of it.

    Args:
        out: the folder for rank-R.json.
        trouble: what goes wrong: one of TROUBLES, or "data", "memory", "nan", "weights", "order", or "disk": the
            checkpoint of that step cannot be written at first. Default: nothing.
        rank: where.
        step: when.
        passes: of the run.
        pieces: of a batch.
        exact: whether they are added as a tree.
        saves: the folder for checkpoints. Default: none.
        lr: the learning rate.
        shard: whether ranks share the optimizer's state.
    """
    here = trouble is not None and launch.rank() == rank
    seed(5 + (here and trouble == "weights"))
    network = Network()
    examples = Broken(EXAMPLES) if here and trouble == "data" else EXAMPLES
    if here and trouble == "nan":
        examples = [*EXAMPLES]
        examples[40] = {"x": EXAMPLES[40]["x"] * float("nan"), "y": EXAMPLES[40]["y"]}
    if here and trouble == "memory":
        network.register_forward_pre_hook(hungry(1))
    if here and trouble == "order":
        examples = examples[:64]
    reached = Reached()
    items = [
        Signals(leave=True),
        *([Saver(saves, every=3, on_error="warn")] if saves else []),
        *([Blocked(Path(saves) / f"step-{step:08d}")] if here and trouble == "disk" else []),
        Tester(tested(network), every=5),
        *([Trouble(step, TROUBLES[trouble])] if here and trouble in TROUBLES else []),
        reached,
        DataProvider(examples, 16, shuffle=True),
        *learning(network, SplitOnMemoryError(network), updater=lambda each: adamw(each, lr)),
    ]
    found = {"rank": launch.rank()}
    try:
        runner = distributed(Runner(*items), pieces=pieces, exact=exact, seed=3, shard_optimizer=shard)
        state = runner.run(passes=passes)
        found |= {"step": state.step, "pass": state.pass_id, "stopped": state.stopped, "metrics": state.metrics}
        found |= {"loss": float(state.loss), "weights": digest(network), "values": values(network)}
        found["kept"] = sum(map(kept, runner.all(ParameterUpdater)))
    except BaseException as error:
        found |= {"error": f"{type(error).__name__}: {error}", "step": reached.step}
        raise
    finally:
        (Path(out) / f"rank-{launch.rank()}.json").write_text(json.dumps(found))


def digest(network):
    """Return a digest of the weights."""
    weights = b"".join(tensor.numpy().tobytes() for tensor in network.state_dict().values())
    return hashlib.sha256(weights).hexdigest()[:16]


def kept(updater):
    """Return the bytes of an optimizer's state that this rank has."""
    accumulators = updater.optimizer._accumulators.values()
    return sum(each.size * each.element_size() for slot in accumulators for each in slot.values())


def values(network):
    """Return some weights."""
    return next(iter(network.state_dict().values())).numpy().reshape(-1)[:8].tolist()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
