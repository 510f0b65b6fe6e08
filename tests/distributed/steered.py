"""A script for a launcher: trainings that are steered, stopped and announced the end, one after another in all ranks.

python -m paddle.distributed.launch --nproc_per_node 2 tests/distributed/steered.py '{"out": ..., "what": [...]}'

Rank R writes OUT/rank-R.json at its end: name of the training -> what came of it on this rank.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from onion import (
    DataProvider,
    EarlyStopping,
    Mailbox,
    Observer,
    ParameterUpdater,
    Preemption,
    Runner,
    RunnerItem,
    Saver,
    Signals,
    State,
    Tester,
    TimeLimit,
)
from onion.checkpointing import checkpoint
from onion.distributed import distributed
from onion.host import launch
from onion.online import ControlServer, Journal, Publish, Switch
from onion.testing import PlannedError
from tests.distributed.job import EXAMPLES, digest
from tests.onions.parts import Network, Noise, adamw, learning, seed, tested

FIRST, OTHER = launch.rank() == 0, launch.rank() == 1
PLAN = {
    2: [("set", {"learning_rate": 0.05})],
    3: [("test", {}), ("save", {})],
    4: [("enable", {"ring": "noise"}), ("pause", {}), ("step", {"n": 1})],
    5: [("set", {"learning_rate": 0.01}), ("resume", {})],
    7: [("disable", {"ring": "noise"})],
}
"""Commands that rank 0 is asked at the end of a step."""


def trained(out, *around, data=(), inside=(), passes=2, serves=False, network=None):
    """Train with items in three places, and return what came of it on this rank.

    Args:
        out: the folder of the checkpoints.
        around: items outside the data.
        data: items just inside the data.
        inside: items just outside the network.
        passes: of the run.
        serves: whether the run has a Journal, as a ControlServer in ``data`` needs.
        network: what is trained. Default: a new one.
    """
    network = network or made()
    signals = Signals(leave=False)
    runner = Runner(
        signals,
        Saver(out, every=4),
        *([Journal()] if serves else []),
        *around,
        DataProvider(EXAMPLES, 16, shuffle=True),
        *data,
        *learning(network, *inside, updater=lambda each: adamw(each, 0.02)),
    )
    found = {}
    try:
        state = distributed(runner, pieces=2, exact=True).run(passes=passes)
        found = {"step": state.step, "pass": state.pass_id, "stopped": state.stopped, "received": signals.received}
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    newest = checkpoint.newest(out)
    rate = runner[ParameterUpdater].optimizer.get_lr()
    return {**found, "saved": newest and newest.step, "weights": digest(network), "rate": rate}


def made():
    """Return a network that is the same on all ranks."""
    seed(5)
    return Network()


class Failing(RunnerItem):
    """Fail after a step."""

    passive = True

    def __init__(self, step):
        self.step = step

    def on_batch(self, state):
        yield
        if state.next_step == self.step:
            raise PlannedError


# -- commands ----------------------------------------------------------------------------------------------------------


def steered(out, plan=PLAN, dies_at=None, test_at=None):
    """Ask the ControlServer of rank 0; ``test_at``: also while the test after this step is under way."""
    control, answers, network = ControlServer(port=None), [], made()

    def ask(state):
        for command, arguments in plan.get(state.next_step, ()) if FIRST else ():
            answers.append(control.ask(command, arguments, f"{state.next_step}-{command}"))

    def in_test(state):
        if FIRST and state.parent.step == test_at:
            answers.append(control.ask("set", {"learning_rate": 0.04}))

    test = Tester(tested(network, Observer(on_pass_begin=in_test)), every=100 if test_at is None else test_at)
    found = trained(
        out,
        test,
        *([Failing(dies_at)] if dies_at else []),
        data=[control, Observer(on_batch_end=ask)],
        inside=[Switch(Noise(), on=False)],
        serves=True,
        network=network,
    )
    told = [future.result(0) for future in answers if not future.exception(0)]
    return {**found, "answers": [[each.command, each.step, each.result, each.error] for each in told]}


def by_commands(out):
    return steered(out / "commands")


def in_a_test(out):
    return steered(out / "test", plan={}, test_at=4)


def dies(out):
    """All die with the newest checkpoint before the last commands."""
    return steered(out / "died", dies_at=7)


def again(out):
    """What died goes on, and the commands after its checkpoint are carried out again, without being asked."""
    return steered(out / "died", plan={7: PLAN[7]})


def failing(out, ranks):
    """A test that fails on some ranks."""

    def fail(state):
        if launch.rank() in ranks:
            raise PlannedError(f"no test on rank {launch.rank()}")

    control = ControlServer(port=None)
    asked = []

    def ask(state):
        if FIRST and state.next_step == 3:
            asked.append(control.ask("test", {}))

    test = Tester(tested(made(), Observer(on_batch_end=fail)), every=100)
    found = trained(out / f"failing-{len(ranks)}", test, data=[control, Observer(on_batch_end=ask)], serves=True)
    for future in asked:
        refused = future.exception(0)
        found["answer"] = str(refused) if refused else future.result(0).error
    return found


def full_disk(out):
    """A save that rank 0 cannot write: its folder is gone for a while."""
    mailbox = Mailbox({"save": lambda state: state.runner[Saver].save(state)})
    asked, folder = [], out / "full"

    def ask(state):
        if FIRST and state.next_step == 3:
            folder.rename(f"{folder}-moved")
            folder.write_text("no folder")
            asked.append(mailbox.post("save"))
            asked[0].add_done_callback(lambda answer: back())

    def back():
        folder.unlink()
        Path(f"{folder}-moved").rename(folder)

    found = trained(folder, data=[mailbox, Observer(on_batch_end=ask)])
    for future in asked:
        found["answer"] = type(future.exception(0)).__name__
    return found


def by_messages(out):
    """Commands of a Mailbox: one for all, one that fails on all, and a stop."""
    updaters = []
    mailbox = Mailbox(
        {
            "rate": lambda state, rate: state.runner[ParameterUpdater].set_learning_rate(rate),
            "where": lambda state: [state.step, launch.rank()],
            "fail": lambda state: updaters[0],
            "stop": State.stop,
        }
    )
    asked = []

    def ask(state):
        if FIRST and state.next_step == 3:
            cancelled = mailbox.post("stop", "never")
            cancelled.cancel()
            posted = [("rate", 0.5), ("where",), ("fail",)]
            asked.extend(mailbox.post(*words) for words in posted)
        if FIRST and state.next_step == 6:
            asked.append(mailbox.post("stop", "seen enough"))

    found = trained(out / "messages", data=[mailbox, Observer(on_batch_end=ask)])
    return {**found, "answers": [str(each.exception(0) or each.result(0)) for each in asked]}


# -- while it is paused ------------------------------------------------------------------------------------------------


def paused(out, then):
    """Pause after step 3; when the run is paused, do something."""
    control = ControlServer(port=None)

    def ask(state):
        if FIRST and state.next_step == 3:
            control.ask("pause", {}).add_done_callback(lambda answer: then(control))

    return trained(out, data=[control, Observer(on_batch_end=ask)], serves=True)


def pids(out):
    """Write down the number of this process, and return a function that finds that of a rank."""
    (out / f"pid-{launch.rank()}").write_text(str(os.getpid()))
    return lambda rank: int((out / f"pid-{rank}").read_text())


def signal_to(out, rank):
    pid = pids(out)
    return paused(out / f"signal-{rank}", lambda control: os.kill(pid(rank), signal.SIGTERM))


def killed(out):
    pid = pids(out)
    return paused(out / "killed", lambda control: os.kill(pid(1), signal.SIGKILL))


def serve(out):
    """Serve over HTTP; paused after step 3, with the address in a file, until commands stop it."""
    control = ControlServer(port=0)

    def ask(state):
        if FIRST and state.next_step == 3:
            control.ask("pause", {}).add_done_callback(lambda answer: note(out / "url", control.url))

    network = made()
    test = Tester(tested(network), every=10_000)
    publish = Publish(network, prepare=as_batch, finish=lambda outputs: outputs.tolist(), every=1)
    around = (test, publish)
    return trained(
        out / "serve", *around, network=network, data=[control, Observer(on_batch_end=ask)], passes=None, serves=True
    )


def as_batch(inputs):
    return {"x": np.asarray(inputs, "float32")}


def note(path, text):
    """Write a file that is whole as soon as it is there."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


# -- stops -------------------------------------------------------------------------------------------------------------


def preempted(out):
    """Rank 1 alone hears after step 3 that its machine ends, in each way of hearing it."""
    past = datetime(1970, 1, 1, tzinfo=timezone.utc)
    file = out / f"notice-{launch.rank()}"

    def at(step, act):
        return Observer(on_batch_end=lambda state: act() if OTHER and state.next_step == step else None)

    found = {}
    found["file"] = trained(out / "file", Preemption(file, clock=Ticks()), data=[at(3, lambda: file.write_text(""))])
    set_variable = partial(os.environ.__setitem__, "ENDS", "1970-01-01T00:00:00Z")
    found["variable"] = trained(out / "variable", Preemption("$ENDS", clock=Ticks()), data=[at(3, set_variable)])
    for name, told in {"nothing but soon": "", "number": 5.0, "datetime": past, "text": "nonsense"}.items():
        heard = []
        notice = Preemption(lambda heard=heard: heard[0] if heard else None, clock=Ticks())
        found[name] = trained(out / name, notice, data=[at(3, partial(heard.append, told))])
    return found


class Ticks:
    """A clock on which a look at the announcement is due after every batch."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        self.now += 2
        return self.now


def limited(out):
    """The clock of rank 1 alone has come to the end, after step 3."""
    clock = iter([0.0, 1.0, 2.0, 9.0 if OTHER else 3.0, *[4.0] * 20])
    return trained(out / "limited", TimeLimit(5, clock=lambda: next(clock)))


def at_the_end(out):
    """The clock of rank 1 alone has come to the end, at the end of the pass, after which there are no more batches."""
    clock = iter([0.0] * 5 + [9.0 if OTHER else 3.0, *[4.0] * 20])
    return trained(out / "end", TimeLimit(5, clock=lambda: next(clock)))


def stopped_early(out):
    """A metric that gets worse."""
    worse = Observer(on_pass_end=lambda state: state.report({"worse": state.parent.step}))
    test = Tester(tested(made(), worse), every=2)
    return trained(out / "early", EarlyStopping("tester.worse", patience=2, mode="min"), test)


TRAININGS = {
    "commands": by_commands,
    "in a test": in_a_test,
    "dies": dies,
    "again": again,
    "all fail": partial(failing, ranks=[0, 1]),
    "one fails": partial(failing, ranks=[1]),
    "full disk": full_disk,
    "messages": by_messages,
    "signal to 0": partial(signal_to, rank=0),
    "signal to 1": partial(signal_to, rank=1),
    "killed": killed,
    "serve": serve,
    "preempted": preempted,
    "limited": limited,
    "at the end": at_the_end,
    "early": stopped_early,
}


def main(out, what, saves=None):
    """Run trainings, of which only the last may end with an error; write down what came of them.

    Args:
        out: the folder for rank-R.json.
        what: names of trainings.
        saves: the folder for checkpoints. Default: ``out``.
    """
    found = {}
    for name in what:
        found[name] = TRAININGS[name](Path(saves or out))
        print(name, "->", found[name], flush=True)
        (Path(out) / f"rank-{launch.rank()}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
