"""Signals: the first one finishes the batch, saves and leaves; the second one leaves at once."""

import os
import pty
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from onion import CompositionError, DataProvider, Observer, Runner, RunnerItem, Saver, Signals, Tester
from onion.checkpointing import checkpoint
from onion.checkpointing.atomic_files import through
from onion.data.prefetch import Prefetcher
from onion.testing import Batches, Failing, PlannedError
from tests.items.disks import Watched
from tests.kernel import running_kernel
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

HANDLED = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
SECOND = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: SystemExit, signal.SIGHUP: SystemExit}
on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="/proc tells whether a process sleeps")


def sending(number, step, **moment):
    """Send a signal to this process in the middle of a batch."""
    hook = next(iter(moment), "on_batch_begin")
    return Observer(**{hook: lambda state: state.step == step and signal.raise_signal(number)})


def noting(steps):
    """Return an item that notes which steps are finished."""
    return Observer(on_batch_end=lambda state: steps.append(state.step))


def saving(folder, *items, signals=None):
    """Return a run of ten batches that is saved at its end."""
    return Runner(signals or Signals(), Saver(folder, every=100), *items, Batches(10))


def left(runner, number):
    """Run an onion that leaves with 128 + n; return the state."""
    states = []
    watched = runner.insert_after(Signals, Observer(initialize=states.append))
    with pytest.raises(SystemExit) as caught:
        watched.run(passes=1)
    assert caught.value.code == 128 + number
    return states[0]


@pytest.fixture(autouse=True)
def _handlers_are_those_of_before():
    usual = [signal.default_int_handler, signal.SIG_DFL, signal.SIG_DFL]  # or not, where pytest runs in the background
    before = [signal.signal(*each) for each in zip(HANDLED, usual, strict=True)]
    yield
    assert [signal.signal(*each) for each in zip(HANDLED, before, strict=True)] == usual


@pytest.mark.parametrize("number", HANDLED)
def test_the_first_signal_finishes_the_batch_saves_and_leaves(number, tmp_path):
    ended, signals = [], Signals()
    state = left(saving(tmp_path, noting(ended), sending(number, step=3), signals=signals), number)
    assert ended == [1, 2, 3, 4]
    assert state.stopped == f"received {signal.Signals(number).name}"
    assert state.pass_cut
    assert signals.received == number
    assert checkpoint.newest(tmp_path).run["counters"] == {"pass_id": 0, "batch_id": 4, "step": 4}


@pytest.mark.parametrize("number", HANDLED)
def test_a_program_that_goes_on_is_told_and_a_later_run_forgets_it(number):
    signals = Signals(leave=False)
    runner = Runner(signals, sending(number, step=3), Batches(10))
    for _ in range(2):
        assert (runner.run(passes=1).step, signals.received) == (4, number)
    state = runner.without(Observer).run(passes=1)
    assert (state.step, state.stopped, signals.received) == (10, None, None)


@pytest.mark.parametrize("second", HANDLED)
@pytest.mark.parametrize("first", HANDLED)
def test_the_second_signal_leaves_at_once_and_saves_nothing(first, second, tmp_path):
    ended = []
    runner = saving(tmp_path, noting(ended), sending(first, step=3), sending(second, step=3))
    if first == second == signal.SIGHUP:  # a closed terminal sends it twice
        assert left(runner, signal.SIGHUP).step == 4
        return
    with pytest.raises(SECOND[second]) as caught:
        runner.run(passes=1)
    assert ended == [1, 2, 3]
    assert getattr(caught.value, "code", 128 + second) == 128 + second
    assert checkpoint.steps_in(tmp_path) == []


@pytest.mark.parametrize("nest", [lambda item: item, Runner])
@pytest.mark.parametrize("leave", [True, False])
def test_it_stands_outside_every_saver(nest, leave, tmp_path):
    with pytest.raises(CompositionError, match=r"signals is inside saver, .* move it further out \(before saver\)"):
        Runner(Saver(tmp_path), nest(Signals(leave)), Batches(1))


@pytest.mark.parametrize("items", [[], [sending(signal.SIGTERM, step=0)]], ids=["no signal", "a signal"])
@pytest.mark.parametrize("failing", [Failing("on_batch"), Failing("on_pass", "out")], ids=["batch", "pass"])
def test_an_error_is_not_hidden_by_leaving_and_the_handlers_are_put_back(items, failing):
    with pytest.raises(PlannedError):
        Runner(Signals(), *items, failing, Batches(3)).run(passes=1)


def test_in_a_with_block_the_process_leaves_at_its_end():
    runner = Runner(Signals(), sending(signal.SIGTERM, step=1), Batches(3))
    steps = []
    with pytest.raises(SystemExit) as caught, runner:
        steps += [runner.run_pass().step, runner.run_pass().step]
    assert (steps, caught.value.code) == ([2, 2], 143)


# -- tests inside ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inner", ["none", "shared", "its own"])
def test_during_a_nested_test_the_training_batch_is_finished_and_saved(inner, tmp_path):
    signals, tested = Signals(), []
    items = {"none": [], "shared": [signals], "its own": [Signals()]}[inner]
    test = Runner(*items, noting(tested), sending(signal.SIGTERM, step=1), Batches(4))
    state = left(saving(tmp_path, Tester(test, every=2), signals=signals), signal.SIGTERM)
    assert (tested, state.step, signals.received) == ([1, 2, 3, 4], 2, signal.SIGTERM)
    assert checkpoint.steps_in(tmp_path) == [2]


def test_paddles_launcher_sends_sigterm_three_times_as_one_notice(tmp_path, monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINER_ID", "0")
    monkeypatch.setenv("PADDLE_LOG_DIR", str(tmp_path / "log"))
    notices = [sending(signal.SIGTERM, step=3) for _ in range(3)]
    assert left(saving(tmp_path / "out", *notices), signal.SIGTERM).step == 4
    assert checkpoint.steps_in(tmp_path / "out") == [4]
    with pytest.raises(KeyboardInterrupt):
        saving(tmp_path / "other", sending(signal.SIGTERM, step=3), sending(signal.SIGINT, step=3)).run(passes=1)


def test_during_a_nested_test_the_second_signal_leaves_at_once(tmp_path):
    tested = []
    signals = sending(signal.SIGTERM, step=1), sending(signal.SIGINT, step=2)
    test = Runner(noting(tested), *signals, Batches(4))
    with pytest.raises(KeyboardInterrupt):
        saving(tmp_path, Tester(test, every=2)).run(passes=1)
    assert tested == [1, 2]
    assert checkpoint.steps_in(tmp_path) == []


def test_a_test_that_waits_for_its_data_is_finished_though_it_shares_the_item_with_the_training():
    sent, trained, tested = [], [], []

    def source():
        for i in range(3):
            if trained == [0, 1] and tested == [0]:
                sent.append(signal.raise_signal(signal.SIGTERM))
            yield i

    def note(batches):
        return Observer(on_batch_begin=lambda state: batches.append(state.batch))

    data = DataProvider(source, 1, collate=lambda one: one[0], prefetch=0)
    test = Tester(Runner(note(tested), data), every=2)
    state = Runner(Signals(leave=False), data, note(trained), test).run(passes=5)
    assert (len(sent), trained, tested) == (1, [0, 1], [0, 1, 2])
    assert (state.pass_cut, data.state_dict()["batch"]) == (True, 2)


# -- moments -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moment", "step", "passes", "cut"),
    [("initialize", 0, 0, False), ("on_pass_begin", 0, 0, True), ("on_pass_end", 3, 1, False)],
)
def test_a_signal_between_batches_ends_the_run_there(moment, step, passes, cut):
    state = Runner(Signals(leave=False), sending(signal.SIGTERM, step, **{moment: True}), Batches(3)).run(passes=2)
    assert (state.step, state.pass_id, state.pass_cut, state.stopped) == (step, passes, cut, "received SIGTERM")


def test_in_another_thread_it_does_nothing():
    steps = []
    thread = threading.Thread(target=lambda: steps.append(Runner(Signals(), Batches(3)).run(passes=1).step))
    thread.start()
    thread.join()
    assert steps == [3]


@pytest.mark.parametrize("number", HANDLED)
def test_a_signal_that_is_ignored_stays_ignored(number):
    before = signal.signal(number, signal.SIG_IGN)
    try:
        assert Runner(Signals(), sending(number, 0), Batches(3)).run(passes=1).step == 3
    finally:
        signal.signal(number, before)


class Ahead(RunnerItem):
    """Make the batches in another thread, which waits for the data in place of the run."""

    def on_pass(self, state):
        with Prefetcher(state.batches, 1) as state.batches:
            yield


def test_while_another_thread_waits_for_the_data_the_batch_under_way_is_finished():
    waits, goes_on, ended = threading.Event(), threading.Event(), []

    def source():
        yield 0
        waits.set()
        goes_on.wait()
        yield 1

    def send(state):
        if state.step == 0:
            assert waits.wait(PATIENCE)
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                goes_on.set()

    state = Runner(
        Signals(leave=False),
        DataProvider(source, 1, prefetch=0),
        Ahead(),
        Observer(on_batch_begin=send, on_batch_end=lambda state: ended.append(state.step)),
    ).run(passes=1)
    assert (ended, state.stopped) == ([1], "received SIGTERM")


# -- in a save ---------------------------------------------------------------------------------------------------------


class Sending(Watched):
    """The disk of this machine, and signals before its n-th change."""

    def __init__(self, at, *numbers):
        self.done, self.at, self.numbers = 0, at, numbers

    def change(self):
        self.done += 1
        for number in self.numbers if self.done == self.at else ():
            signal.raise_signal(number)


class Sum(RunnerItem):
    """A state worth saving."""

    def __init__(self):
        self.sum = np.zeros(2000)

    def on_batch(self, state):
        self.sum = self.sum * 0.5 + state.batch

    def state_dict(self):
        return {"sum": self.sum}

    def load_state_dict(self, saved):
        self.sum = saved["sum"]


def summing(folder):
    return Runner(Signals(leave=False), Saver(folder, every=2), DataProvider([1.0, 2, 3, 4, 5], 1, prefetch=0), Sum())


def sum_after(folder):
    runner = summing(folder)
    runner.run(passes=1)
    return runner[Sum].sum.tobytes()


@pytest.fixture
def folders(tmp_path):
    """Return a folder for each change that a run makes to the disk, by its number."""
    with through(counting := Sending(0)):
        summing(tmp_path / "counted").run(passes=1)
    return {at: tmp_path / str(at) for at in range(1, counting.done + 1)}


def test_a_signal_at_any_moment_of_a_save_lets_it_be_finished(folders, tmp_path):
    whole = sum_after(tmp_path / "whole")
    for at, folder in folders.items():
        with through(Sending(at, signal.SIGTERM)):
            state = summing(folder).run(passes=1)
        assert state.stopped == "received SIGTERM"
        assert checkpoint.newest(folder).step == state.step
        assert sum_after(folder) == whole


def test_a_second_signal_at_any_moment_of_a_save_leaves_the_older_ones_whole(folders, tmp_path):
    whole = sum_after(tmp_path / "whole")
    for at, folder in folders.items():
        with through(Sending(at, signal.SIGTERM, signal.SIGTERM)), pytest.raises(SystemExit):
            summing(folder).run(passes=1)
        assert sum_after(folder) == whole
        assert [path.name for path in folder.iterdir() if not re.fullmatch(r"step-\d+", path.name)] == []


# -- whole processes ---------------------------------------------------------------------------------------------------

SCRIPT = """
import os, signal, sys, threading
from onion import DataProvider, Observer, Progress, Runner, Saver, Signals, Tester

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

def ask(word):
    print(word, flush=True)
    return sys.stdin.readline()

def lines():
    while line := sys.stdin.readline():
        yield float(line)

folder, prefetch = sys.argv[1], int(sys.argv[2])
def run(*rings, data=range(40)):
    rings = [Saver(folder, every=100), DataProvider(data, 1, prefetch=prefetch), *rings]
    state = Runner(Progress(), Signals(), *rings).run(passes=1)
    print("whole", state.step)
"""
MID_BATCH = """
run(Observer(on_batch_begin=lambda state: state.step == 2 and ask("in batch 3")))
"""
TOLD_ONCE = """
def tell(state):
    if state.step == 2:
        signal.raise_signal(signal.{0})
        ask("told once")
run(Observer(on_batch_begin=tell))
"""
WAITING = """
run(Observer(on_batch_end=lambda state: print("ended", state.step, flush=True)), data=lines)
"""
TEST_WAITING = """
def source():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    ask("told once, testing")
    yield 1
run(Tester(Runner(DataProvider(source, 1, prefetch=prefetch)), every=2))
"""

FORKED = """
import multiprocessing

def work(pipe):
    try:
        pipe.send("at work")
        pipe.recv()
    except KeyboardInterrupt:
        raise SystemExit(7)

def fork(state):
    ours, theirs = multiprocessing.Pipe()
    worker = multiprocessing.get_context("fork").Process(target=work, args=(theirs,))
    worker.start()
    ours.recv()
    os.kill(worker.pid, signal.{0})
    worker.join({1})
    print(worker.exitcode, flush=True)
    worker.kill()
run(Observer(on_pass_begin=fork), data=range(2))
"""


def process(folder, what, prefetch=0, until=None, **options):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-c", SCRIPT + what, folder, str(prefetch)]
    started = subprocess.Popen(command, text=True, **{**pipes, **options})
    if until is not None:
        assert started.stdout.readline() == until + "\n"
    return started


def until_it_sleeps(started):
    """A signal that comes just before a thread falls asleep in the system does not wake it, in any Python program."""
    while Path(f"/proc/{started.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        pass


@pytest.mark.parametrize("number", HANDLED)
def test_a_process_told_to_end_finishes_its_batch_saves_and_leaves(number, tmp_path):
    with process(tmp_path, MID_BATCH, until="in batch 3") as started:
        os.kill(started.pid, number)
        told, errors = started.communicate("go on\n")
    assert told == ""
    assert started.returncode == 128 + number, errors
    assert checkpoint.newest(tmp_path).run["counters"] == {"pass_id": 0, "batch_id": 3, "step": 3}


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, -2), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_process_told_twice_leaves_at_once_without_saving(number, status, tmp_path):
    with process(tmp_path, TOLD_ONCE.format("SIGTERM"), until="told once") as started:
        os.kill(started.pid, number)
        told, errors = started.communicate()
    assert (told, started.returncode) == ("", status), errors
    assert checkpoint.steps_in(tmp_path) == []


@on_linux
@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_process_that_waits_for_data_saves_leaves_and_goes_on_with_the_very_batch(prefetch, tmp_path):
    fed = "".join(f"{i}\n" for i in range(5))
    with process(tmp_path, WAITING, prefetch) as started:
        started.stdin.write(fed[:6])  # three of them
        started.stdin.flush()
        assert [started.stdout.readline() for _ in range(3)] == [f"ended {i}\n" for i in (1, 2, 3)]
        until_it_sleeps(started)
        os.kill(started.pid, signal.SIGTERM)
        assert started.stdout.read() == ""
        assert started.wait() == 143
    assert checkpoint.newest(tmp_path).run["counters"] == {"pass_id": 0, "batch_id": 3, "step": 3}
    assert checkpoint.newest(tmp_path).items["data_provider"]["batch"] == 3

    with process(tmp_path, WAITING, prefetch) as again:
        told, errors = again.communicate(fed)
    assert told == "ended 4\nended 5\nwhole 5\n", errors
    assert again.returncode == 0


@on_linux
@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_test_that_waits_for_data_is_left_by_the_second_signal_at_once(prefetch, tmp_path):
    with process(tmp_path, TEST_WAITING, prefetch, until="told once, testing") as started:
        until_it_sleeps(started)
        os.kill(started.pid, signal.SIGTERM)
        assert started.stdout.read() == ""
        assert started.wait() == 143
        assert ("busy with one item for 0.2 s" in started.stderr.read()) == (prefetch == 2)  # and not for ten
    assert checkpoint.steps_in(tmp_path) == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 7), (signal.SIGTERM, -15), (signal.SIGHUP, -1)])
def test_a_forked_worker_answers_as_before_the_run_which_goes_on(number, status, tmp_path):
    with process(tmp_path, FORKED.format(number.name, PATIENCE)) as started:
        told, errors = started.communicate()
    assert told == f"{status}\nwhole 2\n", errors


def test_a_terminal_that_is_closed_loses_nothing(tmp_path):
    """The progress bar cannot be written any more, nor anything else."""
    ours, theirs = pty.openpty()
    begin = "import fcntl, os, termios\nos.setsid()\nfcntl.ioctl(2, termios.TIOCSCTTY, 0)"
    with process(tmp_path, begin + MID_BATCH, until="in batch 3", stderr=theirs) as started:
        os.close(theirs)
        os.close(ours)
        told, _ = started.communicate("go on\n")
    assert (told, started.returncode) == ("", 129)
    assert checkpoint.steps_in(tmp_path) == [3]


# -- notebooks ---------------------------------------------------------------------------------------------------------

CELLS = """
from onion import *
from onion.testing import Batches


class Count(RunnerItem):
    def reset(self):
        self.steps = []

    def on_batch(self, state):
        yield
        self.steps.append(state.step)
        if state.step == 3 and interrupted:
            print("step 3", flush=True)
            while interrupted[0].received is None:  # a notebook's stop button is on its way
                pass

    def state_dict(self):
        return {"steps": ",".join(map(str, self.steps))}

    def load_state_dict(self, saved):
        self.steps = list(map(int, saved["steps"].split(",")))


signals, count = Signals(), Count()
interrupted = [signals]
runner = Runner(signals, Saver("run"), count, Batches(10))
"""


def test_a_cell_that_is_interrupted_saves_says_so_in_a_line_and_can_be_run_again(tmp_path):
    with running_kernel(tmp_path) as kernel:
        assert kernel.run(CELLS).error is None
        cell = kernel.run("runner.run(steps=8)", interrupt_at="step 3")
        assert cell.error == ["KeyboardInterrupt: stopped after step 3"]
        assert cell.warned == ""
        assert checkpoint.steps_in(tmp_path / "run") == [3]

        cell = kernel.run("interrupted.clear(); runner.run(steps=8); print(count.steps)")
        assert (cell.printed, cell.error) == ("[1, 2, 3, 4, 5, 6, 7, 8]\n", None)
