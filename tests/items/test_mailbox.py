"""Mailbox: other threads act on a run between two of its batches."""

import logging
import os
import signal
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait

import paddle
import pytest

from onion import (
    CompositionError,
    DataProvider,
    GradientMachine,
    HookError,
    Mailbox,
    Observer,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    Signals,
    Slot,
    schedules,
)
from onion.testing import Batches, PlannedError, Recorder, toy_examples, toy_network

PATIENCE = 30
"""Seconds after which a test gives a hanging thread up."""


class Gate(RunnerItem):
    """Hold the batch that makes so many steps until somebody opens; tell when it is there."""

    def __init__(self, step):
        self.step, self.reached, self.opened = step, threading.Event(), threading.Event()

    def on_batch(self, state):
        if state.next_step == self.step:
            self.reached.set()
            assert self.opened.wait(PATIENCE)
        yield


@pytest.fixture
def thread():
    with ThreadPoolExecutor(1) as pool:
        yield pool


def while_at(step, items, act, thread, **limits):
    """Run in a thread; ``act()`` while the batch of a step is under way; return the final state."""
    gate = Gate(step)
    running = thread.submit(Runner(*items, gate).run, **limits)
    assert gate.reached.wait(PATIENCE)
    act()
    gate.opened.set()
    return running.result(PATIENCE)


# -- letters -----------------------------------------------------------------------------------------------------------


def test_a_letter_is_read_before_the_next_batch_in_the_thread_of_the_run(thread):
    mailbox, answers = Mailbox(), []

    def where(state):
        return state.step, state.batch_id, state.batch, threading.get_ident()

    def act():
        answers.append(mailbox.post(where))

    idents = []
    note = Observer(on_batch_begin=lambda state: idents.append(threading.get_ident()))
    state = while_at(3, [Batches(5), mailbox, note], act, thread, passes=1)
    assert state.step == 5
    assert answers[0].result(0) == (3, 3, 2, idents[0])
    assert idents[0] != threading.get_ident()


def test_letters_are_read_in_the_order_they_were_posted(thread):
    mailbox, read = Mailbox(), []

    def act():
        for number in range(50):
            mailbox.post(lambda state, number=number: read.append(number))

    while_at(1, [Batches(2), mailbox], act, thread, passes=1)
    assert read == list(range(50))


def test_letters_of_many_threads_are_all_read_once():
    mailbox, read = Mailbox(), []
    with ThreadPoolExecutor(8) as posting:
        for number in range(400):
            posting.submit(mailbox.post, lambda state, number=number: read.append(number))
    Runner(Batches(2), mailbox).run(passes=1)
    assert sorted(read) == list(range(400))


def test_a_letter_may_post_another_which_is_read_at_once():
    mailbox, steps = Mailbox(), []
    mailbox.post(lambda state: mailbox.post(lambda state: steps.append(state.step)))
    Runner(Batches(2), mailbox).run(passes=1)
    assert steps == [0]


def test_it_leaves_the_batches_as_they_are():
    seen = []
    look = Observer(on_batch_end=lambda state: seen.append((state.batch, state.batches.__length_hint__())))
    Runner(Batches(3), Mailbox(), look).run(passes=2)
    assert seen == [(0, 2), (1, 1), (2, 0)] * 2


def test_a_letter_that_fails_is_logged_and_the_run_goes_on(caplog):
    mailbox = Mailbox()
    answer = mailbox.post(lambda state: 1 / 0)
    with caplog.at_level(logging.ERROR, "onion"):
        assert Runner(Batches(3), mailbox).run(passes=1).step == 3
    with pytest.raises(ZeroDivisionError):
        answer.result(0)
    assert "a letter failed; the run goes on" in caplog.text
    assert "division by zero" in caplog.text


def test_a_keyboard_interrupt_in_a_letter_is_meant_for_the_run():
    def interrupted(state):
        raise KeyboardInterrupt

    mailbox = Mailbox()
    answer = mailbox.post(interrupted)
    with pytest.raises(KeyboardInterrupt):
        Runner(Batches(3), mailbox).run(passes=1)
    with pytest.raises(KeyboardInterrupt):
        answer.result(0)


def test_a_letter_that_was_taken_back_is_not_read():
    mailbox, read = Mailbox(), []
    assert mailbox.post(lambda state: read.append(1)).cancel()
    Runner(Batches(2), mailbox).run(passes=1)
    assert read == []


def test_letters_that_no_run_has_read_wait_for_the_next_one_and_those_left_at_its_end_are_cancelled(thread):
    mailbox = Mailbox()
    early, late = mailbox.post(lambda state: state.step), []

    def act():
        mailbox.post(lambda state: state.stop("seen enough"))
        late.append(mailbox.post(lambda state: state.step))

    while_at(2, [Batches(5), mailbox], act, thread, passes=1)
    assert early.result(0) == 0
    with pytest.raises(CancelledError):
        late[0].result(0)


def test_letters_are_cancelled_too_where_an_error_ends_the_run(thread):
    mailbox, left = Mailbox(), []

    def fail(state):
        left.append(mailbox.post(print))
        raise PlannedError

    with pytest.raises(PlannedError):
        Runner(Batches(5), mailbox, Observer(on_batch_end=fail)).run(passes=1)
    assert left[0].cancelled()


def test_outside_the_data_it_says_where_to_stand():
    with pytest.raises(HookError, match="mailbox stands outside the item that brings the data; put it further in"):
        Runner(Mailbox(), Batches(1)).run(passes=1)


# -- stop --------------------------------------------------------------------------------------------------------------


def test_a_stop_costs_no_batch(thread):
    mailbox, trace = Mailbox(), []
    state = while_at(
        3,
        [Recorder("outer", trace), Batches(9), mailbox],
        lambda: mailbox.post(lambda state: state.stop("seen enough")),
        thread,
        passes=2,
    )
    assert (state.step, state.batch_id, state.stopped, state.pass_cut) == (3, 3, "seen enough", True)
    assert trace.count("outer.on_batch:out") == 3
    assert trace[-2:] == ["outer.on_pass:out", "outer.initialize:out"]


def test_a_stop_before_the_first_batch():
    mailbox = Mailbox()
    mailbox.post(lambda state: state.stop("not today"))
    state = Runner(Batches(9), mailbox).run(passes=2)
    assert (state.step, state.stopped) == (0, "not today")


def test_a_stop_of_the_pass_ends_that_pass_only(thread):
    mailbox = Mailbox()
    act = lambda: mailbox.post(lambda state: state.stop_pass("next"))  # noqa: E731
    state = while_at(2, [Batches(5), mailbox], act, thread, passes=2)
    assert (state.step, state.pass_id, state.stopped) == (2 + 5, 2, None)


# -- pause -------------------------------------------------------------------------------------------------------------


def test_a_paused_run_reads_letters_and_draws_no_batch_until_it_is_resumed(thread):
    mailbox, drawn = Mailbox(), []

    def data():
        for number in range(5):
            drawn.append(number)
            yield number

    class Data(RunnerItem):
        def on_pass(self, state):
            state.batches = data()

    gate = Gate(2)
    running = thread.submit(Runner(Data(), mailbox, gate).run, passes=1)
    assert gate.reached.wait(PATIENCE)
    paused = mailbox.pause()
    gate.opened.set()
    paused.result(PATIENCE)
    steps = [mailbox.post(lambda state: state.step).result(PATIENCE) for _ in range(3)]
    assert steps == [2, 2, 2]
    assert drawn == [0, 1]
    assert not running.done()
    mailbox.resume().result(PATIENCE)
    assert running.result(PATIENCE).step == 5
    assert drawn == [0, 1, 2, 3, 4]


def test_a_paused_run_can_be_stopped():
    mailbox = Mailbox()
    with ThreadPoolExecutor(1) as pool:
        mailbox.pause()
        running = pool.submit(Runner(Batches(5), mailbox).run, passes=1)
        mailbox.post(lambda state: state.stop("enough"))
        assert running.result(PATIENCE).stopped == "enough"


def test_a_paused_run_answers_ctrl_c():
    mailbox = Mailbox()
    mailbox.pause()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: (mailbox.post(str).result(PATIENCE), os.kill(os.getpid(), signal.SIGTERM)))
        state = Runner(Signals(), Batches(5), mailbox).run(passes=1)
    assert (state.step, state.stopped) == (0, "received SIGTERM")


def test_the_next_run_is_not_paused(thread):
    mailbox = Mailbox()
    mailbox.pause()
    mailbox.post(lambda state: state.stop("enough"))
    runner = Runner(Batches(2), mailbox)
    runner.run(passes=1)
    assert thread.submit(runner.run, passes=1).result(PATIENCE).step == 2


# -- what letters are for ----------------------------------------------------------------------------------------------


def training(folder, mailbox, *rings, rate=None, seed=0):
    network = toy_network(seed=seed)
    rate = schedules.linear_warmup_and_decay(0.05, steps=24) if rate is None else rate
    optimizer = paddle.optimizer.Adam(rate, parameters=network.parameters())
    return Runner(
        Saver(folder, every=100),
        *rings,
        DataProvider(toy_examples(32), 4, shuffle=True),
        mailbox,
        ParameterUpdater(optimizer),
        GradientMachine(network),
    )


def bits(runner):
    return [each.numpy().tobytes() for each in runner[GradientMachine].network.parameters()]


def post_at(mailbox, step, letter):
    """A ring that posts a letter while the batch of a step is under way; keeps the answer."""
    answers = []

    def post(state):
        if state.next_step == step:
            answers.append(mailbox.post(letter))

    observer = Observer(on_batch_begin=post)
    observer.answers = answers
    return observer


@pytest.mark.parametrize("step", [1, 3, 7, 8, 9, 16, 20])
def test_a_checkpoint_on_demand_goes_on_to_the_same_bits(step, tmp_path):
    uncut = training(tmp_path / "uncut", Mailbox())
    uncut.run(passes=3)
    mailbox = Mailbox()
    saver_folder = tmp_path / "asked"
    runner = training(saver_folder, mailbox)
    asked = post_at(mailbox, step, runner[Saver].save)

    def kill(state):
        if state.step > step:
            raise PlannedError

    with pytest.raises(PlannedError):
        runner.insert_after(Saver, Observer(on_batch_end=kill), asked).run(passes=3)
    assert asked.answers[0].result(0) is (step % 8 != 0)
    saved = sorted(path.name for path in saver_folder.iterdir())
    assert saved[-1].endswith(f"{step + (step % 8 == 0 and step == 0):08d}")
    resumed = training(saver_folder, Mailbox(), seed=5)
    state = resumed.run(passes=3)
    assert (state.step, bits(resumed)) == (24, bits(uncut))


def test_a_checkpoint_asked_for_in_a_paused_run_is_there_before_it_goes_on(tmp_path, thread):
    mailbox = Mailbox()
    runner = training(tmp_path, mailbox)
    gate = Gate(3)
    running = thread.submit(runner.insert_after(Mailbox, gate).run, passes=1)
    assert gate.reached.wait(PATIENCE)
    mailbox.pause()
    answer = mailbox.post(runner[Saver].save)
    gate.opened.set()
    assert answer.result(PATIENCE) is True
    assert [path.name for path in tmp_path.glob("step-*")] == ["step-00000003"]
    mailbox.resume()
    assert running.result(PATIENCE).step == 8


@pytest.mark.parametrize("rate", [None, 0.05])
def test_a_learning_rate_that_was_changed_stays_so_and_is_resumed_with(rate, tmp_path):
    def rates(folder, cut=None):
        mailbox, seen = Mailbox(), []
        runner = training(folder, mailbox, rate=rate)
        change = post_at(mailbox, 10, lambda state: runner[ParameterUpdater].set_learning_rate(0.01))
        look = Observer(on_batch_begin=lambda state: seen.append(runner[ParameterUpdater].readings()["learning_rate"]))
        runner.insert_after(Saver, change, look).run(passes=3, steps=cut)
        return seen, bits(runner)

    seen, uncut = rates(tmp_path / "uncut")
    schedule = schedules.linear_warmup_and_decay(1.0, steps=24)
    shape = []
    for _ in range(24):
        shape.append(schedule())
        schedule.step()
    shape = shape if rate is None else [1.0] * 24
    assert seen == pytest.approx([0.05 * each for each in shape[:10]] + [0.01 * each for each in shape[10:]])
    rates(tmp_path / "cut", cut=15)
    again, resumed = rates(tmp_path / "cut")
    assert again == seen[15:]
    assert resumed == uncut


def test_items_come_and_go_between_passes(thread):
    mailbox, trace, slot = Mailbox(), [], Slot()
    added = Recorder("added", trace)
    gates = [Gate(2), Gate(8)]
    running = thread.submit(Runner(slot, Batches(3), mailbox, *gates).run, passes=4)
    for gate, item in zip(gates, (added, None), strict=True):
        assert gate.reached.wait(PATIENCE)
        answer = mailbox.post(lambda state, item=item: slot.put(item))
        gate.opened.set()
        wait([answer], PATIENCE)
    assert running.result(PATIENCE).step == 12
    assert trace == [
        "added.initialize:in",
        *["added.on_pass:in", *["added.on_batch:in", "added.on_batch:out"] * 3, "added.on_pass:out"] * 2,
        "added.initialize:out",
    ]


def test_what_a_letter_may_not_do_comes_back_as_an_error_and_the_run_goes_on(caplog):
    mailbox, slot = Mailbox(), Slot()
    answer = mailbox.post(lambda state: slot.put(Runner(Recorder("a"))))
    assert Runner(slot, Batches(3), mailbox).run(passes=2).step == 6
    with pytest.raises(CompositionError, match="holds items of its own"):
        answer.result(0)
