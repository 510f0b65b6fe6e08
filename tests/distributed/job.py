"""A script for a launcher: train a small network in all ranks, with some trouble on one of them.

python -m paddle.distributed.launch --nproc_per_node 2 tests/distributed/job.py '{"out": ..., ...}'

The argument is JSON: see ``main``. Rank R writes OUT/rank-R.json at its end: counters, figures, the digest of the
weights, the bytes of the optimizer's state, or the error with which it ended.
"""

from __future__ import annotations

import hashlib
import json
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from onion import (
    Accumulate,
    DataProvider,
    NanGuard,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    Signals,
    SkipIf,
    SplitOnMemoryError,
    TaskData,
    TaskSampler,
    Tester,
)
from onion.distributed import distributed
from onion.host import launch
from onion.testing import toy_examples
from tests.distributed.troubles import (
    GUARDS,
    PLAIN,
    TROUBLES,
    Trouble,
    Turns,
    before_the_run,
    hungry,
    troubled,
    with_nan,
)
from tests.onions.parts import Network, adamw, learning, seed, tested

EXAMPLES = toy_examples(67)  # batches of 16: four full ones and one of three


class Reached(RunnerItem):
    """Note the last step that was finished."""

    passive = True
    step = 0

    def on_batch(self, state):
        yield
        self.step = state.step


class Patience(RunnerItem):
    """Wait for other ranks no longer than this; only once the run has begun, since processes start slowly."""

    passive = True

    def __init__(self, seconds):
        self.seconds = seconds

    def on_pass(self, state):
        if self.group is not None and self.group.channel is not None and self.seconds:
            self.group.channel.timeout = self.seconds


class Blocked(RunnerItem):
    """Let a checkpoint not be written until the run is about to leave."""

    passive = True

    def __init__(self, place):
        self.place = place

    def initialize(self, state):
        self.place.touch()
        yield
        self.place.unlink()


def never(state):
    return False


def main(
    out,
    trouble=None,
    rank=1,
    step=7,
    passes=2,
    pieces=4,
    exact=True,
    saves=None,
    lr=0.02,
    dropout=0.4,
    patience=None,
    timeout=1800,
    shard=False,
):
    """Train, and write down what came of it.

    Args:
        out: the folder for rank-R.json.
        trouble: what goes wrong: a key of OUTCOMES, "weights", or "blocked": the
            checkpoint of that step cannot be written at first. Default: nothing.
        rank: where.
        step: when.
        passes: of the run.
        pieces: of a batch; 0: an ordinary runner, of one process.
        exact: whether they are added as a tree.
        saves: the folder for checkpoints. Default: none.
        lr: the learning rate.
        dropout: of the network.
        patience: seconds to wait for another rank, once the run has begun. Default: ``timeout``.
        timeout: of the group.
        shard: whether ranks share the optimizer's state.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    here = trouble is not None and launch.rank() == rank
    seed(5 + (here and trouble == "weights"))
    network = Network()
    network.dropout.p = dropout
    begun = values(network)
    examples = with_nan(troubled(EXAMPLES, trouble) if here else EXAMPLES, trouble)
    if here and trouble == "memory":
        network.register_forward_pre_hook(hungry(1))
    reached = Reached()
    inside = [
        *([NanGuard(GUARDS[trouble])] if trouble in GUARDS else []),
        *([Accumulate(2)] if trouble == "accumulate more" else []),
        SplitOnMemoryError(network),
    ]
    items = [
        Patience(patience),
        Signals(leave=True),
        *([Saver(saves, every=3, on_error="warn" if trouble == "blocked" else "raise")] if saves else []),
        *([Blocked(Path(saves) / f"step-{step:08d}")] if here and trouble == "blocked" else []),
        Tester(tested(network), every=5),
        *([Trouble(out, step, TROUBLES[trouble])] if here and trouble in TROUBLES else []),
        reached,
        tasks(examples, here) if trouble == "other task" else DataProvider(examples, 16, shuffle=True),
        *([SkipIf(never)] if trouble == "skip" else []),
        *learning(network, *inside, updater=lambda each: adamw(each, lr)),
    ]
    found = {"rank": launch.rank()}
    try:
        if here:
            before_the_run(out, trouble)
        exact = exact and trouble not in PLAIN
        runner = Runner(*items)
        if pieces:
            runner = distributed(runner, pieces=pieces, exact=exact, seed=3, shard_optimizer=shard, timeout=timeout)
        state = runner.run(passes=1 if here and trouble == "other passes" else passes)
        found |= {"step": state.step, "pass": state.pass_id, "stopped": state.stopped, "metrics": state.metrics}
        found |= {"loss": float(state.loss), "weights": digest(network), "values": values(network), "begun": begun}
        found["kept"] = sum(map(kept, runner.all(ParameterUpdater)))
    except BaseException as error:
        found |= {"error": f"{type(error).__name__}: {error}", "step": reached.step}
        raise
    finally:
        (Path(out) / f"rank-{launch.rank()}.json").write_text(json.dumps(found))


def tasks(examples, here):
    """Return the data of two tasks, drawn in turn."""
    strategy = Turns()
    strategy.here = here
    return TaskSampler({name: TaskData(DataProvider(examples, 16, shuffle=True)) for name in ("a", "b")}, strategy)


def series(out, runs):
    """Train several times in these processes; the troubles must be such that all ranks leave in step."""
    for number, each in enumerate(runs):
        folder = Path(out) / str(number)
        folder.mkdir(exist_ok=True)
        try:
            main(folder, **each)
        except BaseException as error:
            print(f"{each}: {type(error).__name__}: {error}", flush=True)
    (Path(out) / f"rank-{launch.rank()}.json").write_text(json.dumps({"runs": len(runs)}))


def digest(network):
    """Return a digest of the weights."""
    weights = b"".join(tensor.numpy().tobytes() for tensor in network.state_dict().values())
    return hashlib.sha256(weights).hexdigest()[:16]


def kept(updater):
    """Return the bytes of an optimizer's state that this rank has."""
    accumulators = updater.optimizer._accumulators.values()
    return sum(each.size * each.element_size() for slot in accumulators for each in slot.values())


def values(network):
    """Return the weights."""
    return [value for tensor in network.state_dict().values() for value in tensor.numpy().reshape(-1).tolist()]


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    (series if "runs" in given else main)(**given)
