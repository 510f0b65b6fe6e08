"""Mailbox: other threads act on a run between two of its batches."""

import logging
import os
import signal
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from contextlib import nullcontext

import paddle
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
    Slot,
    Tester,
    schedules,
)
from onion.data import collate
from onion.testing import Batches, PlannedError, Recorder, toy_examples, toy_network
from tests.patience import PATIENCE


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


def test_a_letter_may_post_another_which_is_read_before_the_next_batch():
    mailbox, steps = Mailbox(), []

    def ask(state):
        steps.append(state.step)
        mailbox.post(ask)

    mailbox.post(ask)
    Runner(Batches(3), mailbox).run(passes=1)
    assert steps == [0, 1, 2, 3]


def test_a_letter_posts_another_in_a_paused_run_which_is_read_at_once():
    mailbox, steps = Mailbox(), []
    mailbox.pause()
    mailbox.post(lambda state: mailbox.post(lambda state: (steps.append(state.step), mailbox.resume())))
    assert Runner(Batches(2), mailbox).run(passes=1).step == 2
    assert steps == [0]


def test_what_is_no_plain_function_is_refused_as_it_is_posted():
    async def later(state):
        pass

    def lazily(state):
        yield

    for message in ("stop", None, later, lazily):
        with pytest.raises(CompositionError, match=r"post: the message must be a plain function of the state"):
            Mailbox().post(message)


def test_letters_are_read_also_where_batches_are_skipped_and_in_every_pass():
    mailbox, seen = Mailbox(), []

    def ask(state):
        seen.append((state.pass_id, state.batch_id, state.step))
        mailbox.post(ask)

    mailbox.post(ask)
    Runner(Batches(3), mailbox, SkipIf(lambda state: state.batch < 2)).run(passes=2)
    assert seen == [(0, 0, 0), (0, 1, 0), (0, 2, 0), (0, 3, 1), (1, 0, 1), (1, 1, 1), (1, 2, 1), (1, 3, 2)]


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
    assert "a message failed; the run continues" in caplog.text
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


def test_concurrent_futures_hear_of_cancelled_letters():
    mailbox, left = Mailbox(), []
    Runner(Batches(1), mailbox, Observer(on_pass_end=lambda state: left.append(mailbox.post(print)))).run(passes=1)
    assert wait(left, PATIENCE) == ({left[0]}, set())


def test_letters_posted_again_as_they_are_cancelled_wait_for_the_next_run():
    mailbox, again = Mailbox(), []

    def post_again(answer):
        again.append(mailbox.post(lambda state: state.step))
        again[-1].add_done_callback(lambda answer: None if not answer.cancelled() else post_again(answer))

    leave = lambda state: mailbox.post(print).add_done_callback(post_again)  # noqa: E731
    runner = Runner(Batches(1), mailbox)
    runner.insert_after(Mailbox, Observer(on_pass_end=leave)).run(passes=1)
    runner.run(passes=1)
    assert [answer.result(0) for answer in again] == [0]


def test_letters_posted_on_the_way_out_of_the_run_wait_for_the_next_one():
    mailbox, late = Mailbox(), []
    runner = Runner(Batches(2), mailbox)
    outer = Observer(finalize=lambda state: late.append(mailbox.post(lambda state: state.stop("too late"))))
    assert runner.insert_before(Batches, outer).run(passes=1).stopped is None
    assert not late[0].done()
    assert runner.run(passes=1).stopped == "too late"
    assert late[0].done()


def test_outside_the_data_it_says_where_to_stand():
    with pytest.raises(CompositionError, match="mailbox is outside batches, which provides the data; move it further"):
        Runner(Mailbox(), Batches(1))
    with pytest.raises(CompositionError, match="mailbox is outside batches"):
        Runner(Runner(Mailbox()), Batches(1))


@pytest.mark.parametrize("onion", [lambda *items: Runner(*items), lambda data, mailbox: Runner(data, Runner(mailbox))])
def test_inside_the_data_it_stands_at_any_depth(onion):
    mailbox = Mailbox()
    answer = mailbox.post(lambda state: state.step)
    onion(Batches(1), mailbox).run(passes=1)
    assert answer.result(0) == 0


def test_data_may_be_wrapped_further_in():
    class Doubled(RunnerItem):
        provides_data = True

        def on_pass(self, state):
            state.batches = (2 * batch for batch in state.batches)

    mailbox, batches = Mailbox(), []
    answer = mailbox.post(lambda state: state.step)
    note = Observer(on_batch_begin=lambda state: batches.append(state.batch))
    Runner(Batches(3), mailbox, Doubled(), note).run(passes=1)
    assert (answer.result(0), batches) == (0, [0, 2, 4])


def test_data_of_an_item_that_does_not_say_so_is_missed_in_the_run():
    class Data(RunnerItem):
        def on_pass(self, state):
            state.batches = iter(range(2))

    with pytest.raises(HookError, match="mailbox is outside the item that provides the data; move it further in"):
        Runner(Mailbox(), Data()).run(passes=1)
    assert Runner(Data(), Mailbox()).run(passes=1).step == 2


# -- several runs ------------------------------------------------------------------------------------------------------


def test_a_test_onion_that_shares_the_mailbox_leaves_the_letters_to_the_training():
    mailbox, readers, watched = Mailbox(), [], []
    training = Runner(Batches(4), mailbox)
    watch = Observer(
        on_batch_begin=lambda state: watched.append(mailbox.post(lambda state: readers.append(state.parent)))
    )
    test = training.insert_after(Mailbox, watch).replace(Batches, Batches(2))
    assert training.insert_before(Batches, Tester(test, every=1)).run(passes=1).step == 4
    assert len(watched) == 8
    assert all(answer.done() and not answer.cancelled() for answer in watched)
    assert readers == [None] * 8


def test_a_test_onion_that_shares_the_mailbox_leaves_the_training_paused(thread):
    mailbox, steps = Mailbox(), []
    training = Runner(Batches(3), mailbox)

    def message(state):
        training.replace(Batches, Batches(2)).run(passes=1, parent=state)
        mailbox.post(lambda state: (steps.append(state.step), mailbox.resume()))

    mailbox.pause()
    mailbox.post(message)
    assert thread.submit(training.run, passes=1).result(PATIENCE).step == 3
    assert steps == [0]  # read in the pause, not before the next batch


def test_a_tester_may_have_a_mailbox_of_its_own():
    mailbox, steps = Mailbox(), []
    test = Runner(Batches(3), mailbox, Observer(finalize=lambda state: steps.append(state.step)))
    stop = Observer(on_batch_begin=lambda state: mailbox.post(lambda state: state.stop_pass("enough")))
    assert Runner(Tester(test, every=1), Batches(2), stop).run(passes=1).step == 2
    assert steps == [0, 0]


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


def test_a_stop_that_came_too_late_can_be_taken_back():
    mailbox = Mailbox()
    runner = Runner(Batches(2), mailbox)
    runner.run(passes=1)
    assert mailbox.post(lambda state: state.stop("too late")).cancel()
    assert runner.run(passes=1).step == 2


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
        state = Runner(Signals(leave=False), Batches(5), mailbox).run(passes=1)
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
    rate = schedules.linear_warmup_and_decay(0.05, total_steps=24) if rate is None else rate
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


def post_at(mailbox, step, message):
    """A ring that posts a message while the batch of a step is under way; keeps the answer."""
    answers = []

    def post(state):
        if state.next_step == step:
            answers.append(mailbox.post(message))

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


# -- groups ------------------------------------------------------------------------------------------------------------

GROUPS = {
    "mailbox, updater, accumulate": lambda mailbox, updater, group: [mailbox, updater, group],
    "updater, accumulate, mailbox": lambda mailbox, updater, group: [updater, group, mailbox],
    "mailbox in a runner, updater, accumulate": lambda mailbox, updater, group: [Runner(mailbox), updater, group],
}


def in_groups(folder, mailbox, order, post=lambda drawn: None, seed=0):
    """Six updates a pass, of 3, 3, 3, 3, 3 and 2 batches; ``post(n)`` as the n-th batch is taken from the data."""
    network, drawn = toy_network(seed=seed), []

    def collate_and_post(examples):
        drawn.append(len(examples))
        post(len(drawn))
        return collate(examples)

    optimizer = paddle.optimizer.Adam(0.05, parameters=network.parameters())
    return Runner(
        Saver(folder, every=100),
        DataProvider(toy_examples(17 * 2), 2, shuffle=True, prefetch=0, collate=collate_and_post),
        *GROUPS[order](mailbox, ParameterUpdater(optimizer), Accumulate(3)),
        GradientMachine(network),
    )


def group_of(number):
    """The update that a batch of the two passes belongs to."""
    passes, place = divmod(number - 1, 17)
    return 6 * passes + place // 3 + 1


@pytest.mark.parametrize("order", GROUPS)
def test_letters_are_read_between_groups_only(order, tmp_path):
    mailbox, read, drawn = Mailbox(), [], []

    def post(number):
        drawn.append(number)
        mailbox.post(lambda state: read.append((number, state.step, state.batch_id, len(drawn))))

    assert in_groups(tmp_path, mailbox, order, post).run(passes=1).step == 6
    groups = [(number, group_of(number)) for number in range(1, 18)]
    assert read == [(number, group, group, min(3 * group, 17)) for number, group in groups]


@pytest.mark.parametrize("order", GROUPS)
@pytest.mark.parametrize("at", [1, 2, 3, 8, 17, 20])
@pytest.mark.parametrize("how", ["save", "stop"])
def test_a_letter_at_any_batch_of_a_group_goes_on_to_the_same_bits(how, at, order, tmp_path):
    uncut = in_groups(tmp_path / "uncut", Mailbox(), order)
    uncut.run(passes=2)
    group = group_of(at)
    mailbox, answers = Mailbox(), []

    def post(number):
        if number == at:
            answers.append(mailbox.post(runner[Saver].save if how == "save" else lambda state: state.stop("enough")))

    def kill(state):
        if how == "save" and state.step > group:
            raise PlannedError

    runner = in_groups(tmp_path / "asked", mailbox, order, post)
    with pytest.raises(PlannedError) if how == "save" else nullcontext():
        runner.insert_before(ParameterUpdater, Observer(on_batch_begin=kill)).run(passes=2)
    # What is asked for at the end of a pass is saved when the pass has been left.
    assert answers[0].result(0) is (group % 6 != 0 if how == "save" else None)
    saved = max(int(path.name.removeprefix("step-")) for path in (tmp_path / "asked").glob("step-*"))
    assert saved == group
    resumed = in_groups(tmp_path / "asked", Mailbox(), order, seed=5)
    assert resumed.run(passes=2).step == 12
    assert bits(resumed) == bits(uncut)


@pytest.mark.parametrize("order", GROUPS)
def test_a_stop_by_an_item_leaves_the_group_whole(order, tmp_path):
    drawn = []
    runner = in_groups(tmp_path, Mailbox(), order, drawn.append)
    stop = Observer(on_batch_begin=lambda state: state.stop("enough"))
    assert runner.insert_before(ParameterUpdater, stop).run(passes=1).step == 1
    assert drawn == [1, 2, 3]


@pytest.mark.parametrize("order", GROUPS)
def test_a_pause_in_a_group_waits_for_its_update_and_changes_no_bit(order, tmp_path):
    uncut = in_groups(tmp_path / "uncut", Mailbox(), order)
    uncut.run(passes=1)
    mailbox, paused = Mailbox(), []

    def post(number):
        mailbox.pause()
        weight = runner[GradientMachine].network.linear.weight
        mailbox.post(lambda state: paused.append((state.step, number, weight.grad)))
        mailbox.resume()

    runner = in_groups(tmp_path / "paused", mailbox, order, post)
    runner.run(passes=1)
    assert paused == [(group_of(number), number, None) for number in range(1, 18)]
    assert bits(runner) == bits(uncut)


# -- what else letters are for -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [None, 0.05])
def test_a_learning_rate_that_was_changed_stays_so_and_is_resumed_with(rate, tmp_path):
    def rates(folder, cut=None):
        mailbox, seen = Mailbox(), []
        runner = training(folder, mailbox, rate=rate)
        change = post_at(mailbox, 10, lambda state: runner[ParameterUpdater].set_learning_rate(0.01))
        look = Observer(
            on_batch_begin=lambda state: seen.append(runner[ParameterUpdater].log_values()["learning_rate"])
        )
        runner.insert_after(Saver, change, look).run(passes=3, steps=cut)
        return seen, bits(runner)

    seen, uncut = rates(tmp_path / "uncut")
    schedule = schedules.linear_warmup_and_decay(1.0, total_steps=24)
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
