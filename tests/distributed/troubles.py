"""What goes wrong on one rank in ``job.py``, and what is to come of it on all of them."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from pathlib import Path

from onion import Accumulate, DataProvider, GradientMachine, ParameterUpdater, RunnerItem, SkipIf, Tester
from onion.device import paddle
from onion.multitask.strategies import RoundRobin

ON, SAVED, NAMED, RAISED = "goes on", "leaves saved", "leaves named", "leaves"
"""All ranks go on with the same weights; all leave after the same step, which is saved; all leave, and those that still
can say which rank is to blame; all leave after the same step with the same error."""


class Trouble(RunnerItem):
    """Do something on the way out of a step; write down when."""

    passive = True

    def __init__(self, out, step, what):
        self.mark, self.step, self.what = Path(out) / "trouble", step, what

    def on_batch(self, state):
        yield
        if state.step == self.step:
            self.mark.touch()
            self.what(state)

    def on_pass(self, state):
        yield
        if self.what is between_passes and state.step == self.step:
            terminate(state)


def fail(state):
    raise ValueError("trouble")


def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def halt(*_, **__):
    os.kill(os.getpid(), signal.SIGSTOP)


def crash(state):
    os.kill(os.getpid(), signal.SIGSEGV)


def terminate(state):
    os.kill(os.getpid(), signal.SIGTERM)


def between_passes(state):
    """Wait for the end of the pass, after which the other ranks begin another one."""


def interrupt_twice(state):
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)


def terminate_thrice(state):
    for _ in range(3):  # as Paddle's launcher does
        os.kill(os.getpid(), signal.SIGTERM)


def in_network(what):
    """Return a trouble in the next forward pass."""
    return lambda state: state.runner[GradientMachine].network.register_forward_pre_hook(what)


def in_collective(name, what):
    """Return a trouble in the next collective of that name."""
    return lambda state: setattr(paddle().distributed, name, what)


def full_disk(state):
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))


def in_save(state):
    os.fsync = die


def other_order(state):
    state.runner[DataProvider].loader._order.seed += 1


def other_rate(state):
    state.runner[ParameterUpdater].optimizer.set_lr(0.5)


def test_alone(state):
    state.runner[Tester].act(state)


def skip(state):
    state.runner[SkipIf].predicate = lambda state: True


def accumulate_more(state):
    state.runner[Accumulate].k += 1


TROUBLES = {
    "terminate": terminate,
    "terminate between passes": between_passes,
    "terminate thrice": terminate_thrice,
    "interrupt": lambda state: os.kill(os.getpid(), signal.SIGINT),
    "interrupt twice": interrupt_twice,
    "stop": lambda state: state.stop("enough"),
    "stop the pass": lambda state: state.stop_pass("enough of this pass"),
    "fail": fail,
    "fail in the network": in_network(lambda layer, inputs: fail(None)),
    "kill": die,
    "crash": crash,
    "halt": halt,
    "kill in a collective": in_collective("all_reduce", die),
    "halt in a collective": in_collective("all_reduce", halt),
    "kill in a test": in_collective("all_gather_object", die),
    "kill in a save": in_save,
    "full disk": full_disk,
    "other order": other_order,
    "other rate": other_rate,
    "test alone": test_alone,
    "skip": skip,
    "accumulate more": accumulate_more,
}
"""What happens on the way out of a step; job.py has more, in the data and before the run."""

OUTCOMES = {
    "terminate": SAVED,
    "terminate between passes": SAVED,
    "terminate thrice": SAVED,
    "interrupt": SAVED,
    "stop": SAVED,
    "data": SAVED,
    "stop the pass": ON,
    "memory": ON,
    "slow": ON,
    "nan": ON,
    "nan skipped": ON,
    "nan rolled back": ON,
    "nan raised": RAISED,
    "interrupt twice": NAMED,
    "fail": NAMED,
    "fail in the network": NAMED,
    "kill": NAMED,
    "crash": NAMED,
    "halt": NAMED,
    "kill in a collective": NAMED,
    "halt in a collective": NAMED,
    "kill in a test": NAMED,
    "kill in a save": NAMED,
    "full disk": NAMED,
    "absent": NAMED,
    "length": NAMED,
    "other order": NAMED,
    "other rate": NAMED,
    "other task": NAMED,
    "other passes": NAMED,
    "test alone": NAMED,
    "skip": NAMED,
    "accumulate more": NAMED,
}
"""What comes of each trouble."""

GUARDS = {"nan skipped": "skip", "nan rolled back": "rollback", "nan raised": "raise"}
PLAIN = ("kill in a collective", "halt in a collective")
"""These are troubles of the sum that is fast."""


class Turns(RoundRobin):
    """Leave out a turn on this rank, before the third batch."""

    here = False

    def weights(self, step, names):
        if self.here and step == 2:
            super().weights(step, names)
        return super().weights(step, names)


class Broken(list):
    """Examples that cannot be read any more on this rank, after a while."""

    asked = 0

    def __getitem__(self, index):
        self.asked += 1
        if self.asked > 22:  # not in the first batch of a pass
            raise OSError("the disk of this rank is broken")
        return super().__getitem__(index)


class Slow(list):
    """Examples of which one takes long."""

    def __getitem__(self, index):
        if index == 40:
            time.sleep(2)
        return super().__getitem__(index)


def troubled(examples, trouble):
    """Return the examples as the rank with the trouble has them."""
    kinds = {"data": Broken, "slow": Slow}
    if trouble in kinds:
        return kinds[trouble](examples)
    if trouble == "length":
        return examples[:64]
    return examples


def with_nan(examples, trouble):
    """Return the examples as all ranks have them: one of NaN, which one rank draws."""
    if trouble is not None and trouble.startswith("nan"):
        bad = {"x": examples[40]["x"] * float("nan"), "y": examples[40]["y"]}
        return [*examples[:40], bad, *examples[41:]]
    return examples


def before_the_run(out, trouble):
    """Do what goes wrong before the ranks have met."""
    if trouble == "absent":
        (Path(out) / "trouble").touch()
        sys.exit("this rank never comes")


def hungry(times):
    """Return a hook of a network that is out of memory at first."""
    left = [times]

    def before(layer, inputs):
        if left[0]:
            left[0] -= 1
            raise MemoryError("(ResourceExhausted) out of memory")

    return before
