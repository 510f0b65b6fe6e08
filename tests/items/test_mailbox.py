"""Mailbox: other threads act on a run between two of its batches."""

import logging
import os
import signal
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from contextlib import nullcontext

import pytest

from onion import (
    Accumulate,
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
    SkipIf,
    State,
    Tester,
)
from onion.data import collate
from onion.testing import Batches, PlannedError, Recorder, toy_examples, toy_network
from tests.items.learning import updater
from tests.patience import PATIENCE
from tests.rings import Watch
from tests.toys import bits


class Gate(RunnerItem):
    """Hold the batch that makes so many steps until the gate is opened."""

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


@pytest.fixture
def mailbox():
    return Mailbox()


def while_at(step, items, act, thread, **limits):
    """Run in a thread and act while the batch of a step is under way; return the future of the run and act's result."""
    gate = Gate(step)
    running = thread.submit(Runner(*items, gate).run, **limits)
    assert gate.reached.wait(PATIENCE)
    result = act()
    gate.opened.set()
    return running, result


def step_of(state):
    return state.step


def test_a_message_is_read_before_the_next_batch_in_the_thread_of_the_run(mailbox, thread):
    def where(state):
        return state.step, state.batch_id, state.batch, threading.get_ident()

    idents = Watch(lambda state: threading.get_ident())
    running, answer = while_at(3, [Batches(5), mailbox, idents], lambda: mailbox.post(where), thread, passes=1)
    assert running.result(PATIENCE).step == 5
    assert answer.result(0) == (3, 3, 2, idents.seen[0])
    assert idents.seen[0] != threading.get_ident()


def test_messages_are_read_in_the_order_they_were_posted_each_once(mailbox):
    read = []
    for number in range(50):
        mailbox.post(lambda state, number=number: read.append(number))
    with ThreadPoolExecutor(8) as posting:
        for number in range(50, 400):
            posting.submit(mailbox.post, lambda state, number=number: read.append(number))
    Runner(Batches(2), mailbox).run(passes=1)
    assert read[:50] == list(range(50))
    assert sorted(read) == list(range(400))


def test_a_message_that_posts_another_is_answered_before_every_batch(mailbox):
    def ask(state):
        seen.append((state.pass_id, state.batch_id, state.step))
        mailbox.post(ask)

    seen = []
    mailbox.post(ask)
    Runner(Batches(3), mailbox, SkipIf(lambda state: state.batch < 2)).run(passes=2)
    assert seen == [(0, 0, 0), (0, 1, 0), (0, 2, 0), (0, 3, 1), (1, 0, 1), (1, 1, 1), (1, 2, 1), (1, 3, 2)]


async def later(state):
    pass


def lazily(state):
    yield


@pytest.mark.parametrize("message", [None, later, lazily])
def test_only_plain_functions_are_accepted(message):
    with pytest.raises(CompositionError, match=r"post: the message must be a plain function of the state"):
        Mailbox().post(message)
    with pytest.raises(CompositionError, match=r"the command 'one' must be a plain function of the state"):
        Mailbox({"one": message})


def test_commands_are_posted_by_name_with_json_values(thread):
    mailbox = Mailbox({"add": lambda state, *numbers: (state.step, sum(numbers)), "stop": State.stop})
    answers = [mailbox.post("add", 1, 2), mailbox.post("stop", "enough")]
    state = Runner(Batches(5), mailbox).run(passes=1)
    assert (answers[0].result(0), answers[1].result(0)) == ((0, 3), None)
    assert (state.step, state.stopped) == (0, "enough")


def test_what_is_no_command_is_refused():
    with pytest.raises(CompositionError, match="no command 'save'; there are stop, pause, resume"):
        Mailbox({"stop": State.stop}).post("save")
    with pytest.raises(CompositionError, match="the arguments of 'stop' must be JSON values"):
        Mailbox({"stop": State.stop}).post("stop", object())
    with pytest.raises(CompositionError, match="have another name than pause and resume"):
        Mailbox({"pause": State.stop})


def test_of_several_processes_the_first_takes_the_names_of_commands_only(monkeypatch):
    mailbox = Mailbox({"stop": State.stop})
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    mailbox.post("stop", "enough")
    with pytest.raises(CompositionError, match=r'2 processes run the onion; name it on all of them, Mailbox\({"name":'):
        mailbox.post(step_of)
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    with pytest.raises(CompositionError, match="this is rank 1, and messages are read on rank 0"):
        mailbox.pause()


def test_a_message_that_fails_is_logged_and_the_run_continues(mailbox, caplog):
    answer = mailbox.post(lambda state: 1 / 0)
    with caplog.at_level(logging.ERROR, "onion"):
        assert Runner(Batches(3), mailbox).run(passes=1).step == 3
    with pytest.raises(ZeroDivisionError):
        answer.result(0)
    assert "a message failed; the run continues" in caplog.text
    assert "division by zero" in caplog.text


def test_a_keyboard_interrupt_in_a_message_is_meant_for_the_run(mailbox):
    def interrupted(state):
        raise KeyboardInterrupt

    answer = mailbox.post(interrupted)
    with pytest.raises(KeyboardInterrupt):
        Runner(Batches(3), mailbox).run(passes=1)
    with pytest.raises(KeyboardInterrupt):
        answer.result(0)


def test_a_message_that_was_cancelled_is_not_read(mailbox):
    read = []
    assert mailbox.post(read.append).cancel()
    Runner(Batches(2), mailbox).run(passes=1)
    assert read == []


def test_messages_before_a_run_wait_for_it_and_those_left_at_its_end_are_cancelled(mailbox, thread):
    def act():
        mailbox.post(lambda state: state.stop("seen enough"))
        return mailbox.post(step_of)

    early = mailbox.post(step_of)
    running, late = while_at(2, [Batches(5), mailbox], act, thread, passes=1)
    running.result(PATIENCE)
    assert early.result(0) == 0
    with pytest.raises(CancelledError):
        late.result(0)


@pytest.mark.parametrize("error", [None, PlannedError])
def test_concurrent_futures_learns_of_cancelled_messages_after_an_error_too(mailbox, error):
    def leave(state):
        left.append(mailbox.post(print))
        if error:
            raise error

    left = []
    with pytest.raises(error) if error else nullcontext():
        Runner(Batches(1), mailbox, Observer(on_pass_end=leave)).run(passes=1)
    assert left[0].cancelled()
    assert wait(left, PATIENCE) == ({left[0]}, set())


def test_messages_posted_again_as_they_are_cancelled_wait_for_the_next_run(mailbox):
    def post_again(answer):
        again.append(mailbox.post(step_of))
        again[-1].add_done_callback(lambda answer: None if not answer.cancelled() else post_again(answer))

    def leave(state):
        mailbox.post(print).add_done_callback(post_again)

    again = []
    runner = Runner(Batches(1), mailbox)
    runner.insert_after(Mailbox, Observer(on_pass_end=leave)).run(passes=1)
    runner.run(passes=1)
    assert [answer.result(0) for answer in again] == [0]


def test_messages_posted_on_the_way_out_of_the_run_wait_for_the_next_one(mailbox):
    runner = Runner(Batches(2), mailbox)
    outer = Watch(lambda state: mailbox.post(lambda state: state.stop("too late")), "finalize")
    assert runner.insert_before(Batches, outer).run(passes=1).stopped is None
    assert not outer.seen[0].done()
    assert runner.run(passes=1).stopped == "too late"
    assert outer.seen[0].done()


@pytest.mark.parametrize("nest", [lambda mailbox: mailbox, Runner])
def test_inside_the_data_it_may_be_at_any_depth_and_outside_it_is_refused(mailbox, nest):
    answer = mailbox.post(step_of)
    Runner(Batches(1), nest(mailbox)).run(passes=1)
    assert answer.result(0) == 0
    with pytest.raises(CompositionError, match="mailbox is outside batches, which provides the data; move it further"):
        Runner(nest(Mailbox()), Batches(1))


def test_data_may_be_wrapped_further_in(mailbox):
    class Doubled(RunnerItem):
        provides_data = True

        def on_pass(self, state):
            state.batches = (2 * batch for batch in state.batches)

    answer, batches = mailbox.post(step_of), Watch(lambda state: state.batch)
    Runner(Batches(3), mailbox, Doubled(), batches).run(passes=1)
    assert (answer.result(0), batches.seen) == (0, [0, 2, 4])


class Data(RunnerItem):
    """Data of an item that does not declare it."""

    def __init__(self, batches):
        self.batches = batches

    def on_pass(self, state):
        state.batches = iter(self.batches)


def test_undeclared_data_is_missed_in_the_run():
    with pytest.raises(HookError, match="mailbox is outside the item that provides the data; move it further in"):
        Runner(Mailbox(), Data([0, 1])).run(passes=1)
    assert Runner(Data([0, 1]), Mailbox()).run(passes=1).step == 2


def test_a_test_onion_that_shares_the_mailbox_leaves_the_messages_to_the_training(mailbox):
    readers = []
    training = Runner(Batches(4), mailbox)
    watch = Watch(lambda state: mailbox.post(lambda state: readers.append(state.parent)))
    test = training.insert_after(Mailbox, watch).replace(Batches, Batches(2))
    assert training.insert_before(Batches, Tester(test, every=1)).run(passes=1).step == 4
    assert len(watch.seen) == 8
    assert all(answer.done() and not answer.cancelled() for answer in watch.seen)
    assert readers == [None] * 8


def test_a_stop_costs_no_batch(mailbox, thread):
    outer = Recorder("outer")
    items, act = [outer, Batches(9), mailbox], lambda: mailbox.post(lambda state: state.stop("seen enough"))
    state = while_at(3, items, act, thread, passes=2)[0].result(PATIENCE)
    assert (state.step, state.batch_id, state.stopped, state.pass_cut) == (3, 3, "seen enough", True)
    assert outer.trace.count("outer.on_batch:out") == 3
    assert outer.trace[-2:] == ["outer.on_pass:out", "outer.initialize:out"]


# -- pause -------------------------------------------------------------------------------------------------------------


def test_a_paused_run_reads_messages_and_draws_no_batch_until_it_is_resumed(mailbox, thread):
    def numbers():
        for number in range(5):
            drawn.append(number)
            yield number

    drawn = []
    running, paused = while_at(2, [Data(numbers()), mailbox], mailbox.pause, thread, passes=1)
    paused.result(PATIENCE)
    assert [mailbox.post(step_of).result(PATIENCE) for _ in range(3)] == [2, 2, 2]
    assert drawn == [0, 1]
    assert not running.done()
    mailbox.resume().result(PATIENCE)
    assert running.result(PATIENCE).step == 5
    assert drawn == [0, 1, 2, 3, 4]


def test_a_paused_run_can_be_stopped_and_the_next_one_is_not_paused(mailbox, thread):
    mailbox.pause()
    runner = Runner(Batches(2), mailbox)
    running = thread.submit(runner.run, passes=1)
    mailbox.post(lambda state: state.stop("enough"))
    assert running.result(PATIENCE).stopped == "enough"
    assert thread.submit(runner.run, passes=1).result(PATIENCE).step == 2


def test_a_paused_run_answers_a_signal(mailbox, thread):
    mailbox.pause()
    thread.submit(lambda: (mailbox.post(str).result(PATIENCE), os.kill(os.getpid(), signal.SIGTERM)))
    state = Runner(Signals(leave=False), Batches(5), mailbox).run(passes=1)
    assert (state.step, state.stopped) == (0, "received SIGTERM")


# -- groups ------------------------------------------------------------------------------------------------------------

GROUPS = {
    "mailbox, updater, accumulate": lambda mailbox, updater, group: [mailbox, updater, group],
    "updater, accumulate, mailbox": lambda mailbox, updater, group: [updater, group, mailbox],
    "mailbox in a runner, updater, accumulate": lambda mailbox, updater, group: [Runner(mailbox), updater, group],
}
orders = pytest.mark.parametrize("order", GROUPS)


def training(folder, order, mailbox, post=lambda number: None, seed=0):
    """Six updates a pass, of 3, 3, 3, 3, 3 and 2 batches; ``post(n)`` as the n-th batch is taken from the data."""
    network, drawn = toy_network(seed=seed), []

    def collate_and_post(examples):
        drawn.append(examples)
        post(len(drawn))
        return collate(examples)

    data = DataProvider(toy_examples(17 * 2), 2, shuffle=True, prefetch=0, collate=collate_and_post)
    rings = GROUPS[order](mailbox, updater(network, optimizer="Adam"), Accumulate(3))
    return Runner(Saver(folder, every=100), data, *rings, GradientMachine(network))


def uncut(folder, order, passes):
    runner = training(folder, order, Mailbox())
    runner.run(passes=passes)
    return bits(runner[GradientMachine].network)


def group_of(number):
    """The update that a batch of the two passes belongs to."""
    passes, place = divmod(number - 1, 17)
    return 6 * passes + place // 3 + 1


@orders
def test_messages_are_read_between_groups_only(order, mailbox, tmp_path):
    read, drawn = [], []

    def post(number):
        drawn.append(number)
        mailbox.post(lambda state: read.append((number, state.step, state.batch_id, len(drawn))))

    assert training(tmp_path, order, mailbox, post).run(passes=1).step == 6
    groups = [(number, group_of(number)) for number in range(1, 18)]
    assert read == [(number, group, group, min(3 * group, 17)) for number, group in groups]


@orders
@pytest.mark.parametrize("at", [1, 2, 3, 8, 17, 20])
@pytest.mark.parametrize("how", ["save", "stop"])
def test_a_run_that_was_saved_or_stopped_at_any_batch_of_a_group_resumes_to_the_same_bits(
    how, at, order, mailbox, tmp_path
):
    group, answers = group_of(at), []

    def post(number):
        if number == at:
            answers.append(mailbox.post(runner[Saver].save if how == "save" else lambda state: state.stop("enough")))

    def kill(state):
        if how == "save" and state.step > group:
            raise PlannedError

    runner = training(tmp_path / "asked", order, mailbox, post)
    with pytest.raises(PlannedError) if how == "save" else nullcontext():
        runner.insert_before(ParameterUpdater, Observer(on_batch_begin=kill)).run(passes=2)
    # What is asked for at the end of a pass is saved when the pass has been left.
    assert answers[0].result(0) is (group % 6 != 0 if how == "save" else None)
    assert max((tmp_path / "asked").glob("step-*")).name == f"step-{group:08d}"
    resumed = training(tmp_path / "asked", order, Mailbox(), seed=5)
    assert resumed.run(passes=2).step == 12
    assert bits(resumed[GradientMachine].network) == uncut(tmp_path / "uncut", order, passes=2)


@orders
def test_a_stop_by_an_item_leaves_the_group_whole(order, mailbox, tmp_path):
    drawn = []
    stop = Observer(on_batch_begin=lambda state: state.stop("enough"))
    runner = training(tmp_path, order, mailbox, drawn.append).insert_before(ParameterUpdater, stop)
    assert runner.run(passes=1).step == 1
    assert drawn == [1, 2, 3]


@orders
def test_a_pause_in_a_group_waits_for_its_update_and_changes_no_bit(order, mailbox, tmp_path):
    paused = []

    def post(number):
        mailbox.pause()
        mailbox.post(lambda state: paused.append((state.step, number, network.linear.weight.grad)))
        mailbox.resume()

    runner = training(tmp_path / "paused", order, mailbox, post)
    network = runner[GradientMachine].network
    runner.run(passes=1)
    assert paused == [(group_of(number), number, None) for number in range(1, 18)]
    assert bits(network) == uncut(tmp_path / "uncut", order, passes=1)
