"""Signals: the first one finishes the batch and saves, the second leaves at once."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from onion import Observer, Runner, Saver, Signals, Tester, checkpoint
from onion.testing import Batches, Failing, PlannedError

HANDLED = [signal.SIGINT, signal.SIGTERM]


def sending(number, step, **moment):
    """Send a signal to this process in the middle of a batch."""
    hook = next(iter(moment), "on_batch_begin")
    return Observer(**{hook: lambda state: state.step == step and signal.raise_signal(number)})


@pytest.fixture(autouse=True)
def _handlers_are_those_of_before():
    before = [signal.getsignal(number) for number in HANDLED]
    yield
    assert [signal.getsignal(number) for number in HANDLED] == before


@pytest.mark.parametrize("number", HANDLED)
def test_the_first_signal_finishes_the_batch_and_saves(number, tmp_path):
    ended = []
    signals = Signals()
    state = Runner(
        signals,
        Saver(tmp_path, every=100),
        Observer(on_batch_end=lambda state: ended.append(state.step)),
        sending(number, step=3),
        Batches(10),
    ).run(passes=1)
    assert ended == [1, 2, 3, 4]
    assert state.stopped == f"received {signal.Signals(number).name}"
    assert state.pass_cut
    assert signals.received == number
    assert checkpoint.newest(tmp_path).run["counters"] == {"pass_id": 0, "batch_id": 4, "step": 4}


@pytest.mark.parametrize("number", HANDLED)
def test_the_second_signal_leaves_at_once_and_saves_nothing(number, tmp_path):
    ended = []
    with pytest.raises(KeyboardInterrupt):
        Runner(
            Saver(tmp_path, every=100),
            Signals(),
            Observer(on_batch_end=lambda state: ended.append(state.step)),
            sending(signal.SIGTERM, step=3),
            sending(number, step=3),
            Batches(10),
        ).run(passes=1)
    assert ended == [1, 2, 3]
    assert checkpoint.steps_in(tmp_path) == []


def test_without_a_signal_nothing_was_received():
    signals = Signals()
    state = Runner(signals, Batches(3)).run(passes=1)
    assert signals.received is None
    assert state.stopped is None


def test_a_later_run_begins_anew():
    signals = Signals()
    runner = Runner(signals, sending(signal.SIGTERM, step=1), Batches(3))
    assert runner.run(passes=1).step == 2
    assert runner.run(passes=1).step == 2
    assert signals.received == signal.SIGTERM
    runner.without(Observer).run(passes=1)
    assert signals.received is None


def test_during_a_nested_test_the_training_batch_is_finished_and_saved(tmp_path):
    tested = []
    test = Runner(
        Observer(on_batch_end=lambda state: tested.append(state.step)), sending(signal.SIGTERM, step=1), Batches(4)
    )
    state = Runner(Signals(), Saver(tmp_path, every=100), Tester(test, every=2), Batches(10)).run(passes=1)
    assert tested == [1, 2, 3, 4]
    assert state.step == 2
    assert checkpoint.steps_in(tmp_path) == [2]


def test_during_a_nested_test_the_second_signal_leaves_at_once(tmp_path):
    tested = []
    test = Runner(
        Observer(on_batch_end=lambda state: tested.append(state.step)),
        sending(signal.SIGTERM, step=1),
        sending(signal.SIGINT, step=2),
        Batches(4),
    )
    with pytest.raises(KeyboardInterrupt):
        Runner(Signals(), Saver(tmp_path, every=100), Tester(test, every=2), Batches(10)).run(passes=1)
    assert tested == [1, 2]
    assert checkpoint.steps_in(tmp_path) == []


@pytest.mark.parametrize("moment", ["on_pass_begin", "initialize"])
def test_a_signal_before_the_first_batch_ends_the_run_before_it(moment):
    state = Runner(Signals(), sending(signal.SIGTERM, 0, **{moment: True}), Batches(3)).run(passes=2)
    assert state.step == 0
    assert state.stopped == "received SIGTERM"


def test_a_signal_at_the_end_of_a_pass_ends_the_run_there():
    state = Runner(Signals(), sending(signal.SIGTERM, 3, on_pass_end=True), Batches(3)).run(passes=2)
    assert (state.step, state.pass_id) == (3, 1)
    assert not state.pass_cut


def test_the_handlers_are_put_back_after_an_error():
    with pytest.raises(PlannedError):
        Runner(Signals(), Failing("on_batch", "in"), Batches(3)).run(passes=1)


def test_the_reason_that_came_first_is_kept():
    stop = Observer(on_batch_begin=lambda state: state.stop("enough"))
    state = Runner(Signals(), stop, sending(signal.SIGTERM, 0), Batches(3)).run(passes=1)
    assert state.stopped == "enough"


def test_in_another_thread_it_does_nothing():
    steps = []
    thread = threading.Thread(target=lambda: steps.append(Runner(Signals(), Batches(3)).run(passes=1).step))
    thread.start()
    thread.join()
    assert steps == [3]


# -- whole processes -------------------------------------------------------------------------------------------------

SCRIPT = """
import sys, warnings
warnings.simplefilter("ignore")
import paddle
from onion import DataProvider, GradientMachine, Observer, ParameterUpdater, Runner, Saver, Signals, Tester
from onion.testing import toy_examples, toy_network

def wait(state):
    if state.step == 2:
        print("in batch 3", flush=True)
        sys.stdin.readline()
        print("told to go on", flush=True)

network = toy_network()
signals = Signals()
state = Runner(
    signals,
    Saver(sys.argv[1], every=100),
    Observer(on_batch_begin=wait),
    DataProvider(toy_examples(40), 4),
    ParameterUpdater(paddle.optimizer.Adam(0.05, parameters=network.parameters())),
    GradientMachine(network),
).run(passes=1)
print(state.step, state.stopped, flush=True)
sys.exit(128 + signals.received if signals.received else 0)
"""


def process(folder):
    started = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout.readline() == "in batch 3\n"
    return started


@pytest.mark.parametrize("number", HANDLED)
def test_a_process_told_to_end_finishes_its_batch_saves_and_leaves(number, tmp_path):
    with process(tmp_path) as started:
        os.kill(started.pid, number)
        told, errors = started.communicate("go on\n")
    assert told == f"told to go on\n3 received {signal.Signals(number).name}\n"
    assert started.returncode == 128 + number, errors
    assert checkpoint.newest(tmp_path).run["counters"] == {"pass_id": 0, "batch_id": 3, "step": 3}


def test_a_process_told_twice_leaves_at_once_without_saving(tmp_path):
    with process(tmp_path) as started:
        os.kill(started.pid, signal.SIGTERM)
        os.kill(started.pid, signal.SIGINT)
        told, errors = started.communicate()
    assert told == ""
    assert "KeyboardInterrupt" in errors
    assert started.returncode != 0
    assert checkpoint.steps_in(tmp_path) == []


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert Runner(Signals(), sending(signal.SIGINT, 0), Batches(3)).run(passes=1).step == 3
    finally:
        signal.signal(signal.SIGINT, before)
