"""How many updates an onion makes: what is planned is what is made, whatever it is composed of."""

import paddle
import pytest

from onion import (
    Accumulate,
    CompositionError,
    DataProvider,
    Every,
    GradientMachine,
    Observer,
    OnionError,
    ParameterUpdater,
    Repeat,
    Runner,
    Saver,
    TaskData,
    TaskSampler,
    schedules,
)
from onion.schedules import Passes
from onion.testing import Batches, PlannedError, assert_resumes_exactly, toy_examples, toy_network
from onion.training.updates import steps_of, updates_in


class Counting:
    def __init__(self, length=100):
        self.network = toy_network()
        self.rate = schedules.linear_warmup_and_decay(0.01, length)
        self.optimizer = paddle.optimizer.SGD(self.rate, parameters=self.network.parameters())
        self.rates = []
        step = self.optimizer.step
        self.optimizer.step = lambda: (self.rates.append(self.optimizer.get_lr()), step())[1]
        self.updater, self.machine = ParameterUpdater(self.optimizer), GradientMachine(self.network)


def numbers(count=36):
    return DataProvider(toy_examples(count), 4, prefetch=0)


COMPOSED = {
    "plain": lambda one: [one.updater, one.machine],
    "accumulate": lambda one: [one.updater, Accumulate(4), one.machine],
    "repeat outside": lambda one: [Repeat(3), one.updater, one.machine],
    "repeat inside": lambda one: [one.updater, Repeat(3), one.machine],
    "repeat outside accumulate": lambda one: [Repeat(2), one.updater, Accumulate(4), one.machine],
    "every": lambda one: [Every(2, Runner(one.updater, one.machine))],
    "nested": lambda one: [Runner(Repeat(2), Runner(one.updater, Accumulate(2), one.machine))],
}


@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("composed", COMPOSED)
def test_as_many_updates_as_are_made(composed, passes):
    one = Counting()
    runner = Runner(numbers(), *COMPOSED[composed](one))
    planned = updates_in(Passes(passes), one.updater, runner)
    state = runner.run(passes=passes)
    assert planned == len(one.rates)
    assert state.step == passes * steps_of(9, runner)


def test_the_batches_of_a_pass_are_those_of_the_data_that_are_there():
    one = Counting()
    for data, batches in [(numbers(10), 3), (Batches(7), 7), (DataProvider(toy_examples(10), 4, drop_last=True), 2)]:
        assert updates_in(Passes(2), one.updater, Runner(data, one.updater, one.machine)) == 2 * batches
    tasks = TaskSampler({"a": TaskData(numbers(12)), "b": TaskData(numbers(12), mix_ratio=2.0)})
    assert updates_in(Passes(1), one.updater, Runner(tasks, one.updater, one.machine)) == 9


def test_a_stream_has_to_be_told_of_and_then_is_planned():
    one, stream = Counting(Passes(2)), DataProvider(lambda: iter(toy_examples(36)), 4, prefetch=0)
    with pytest.raises(CompositionError, match=r"over 2 passes, but the data do not say .* Passes\(2, batches=...\)"):
        Runner(stream, one.updater, one.machine).run(passes=2)
    one = Counting(Passes(2, batches=9))
    Runner(stream, one.updater, Accumulate(4), one.machine).run(passes=2)
    assert one.optimizer.get_lr() == 0
    assert len(one.rates) == 6


@pytest.mark.parametrize("length", [{"count": 0}, {"count": 1.5}, {"count": True}, {"count": 2, "batches": 0}])
def test_no_passes_are_refused(length):
    with pytest.raises(CompositionError, match=r"Passes: (count|batches) must be an integer >= 1"):
        Passes(**length)


@pytest.mark.parametrize("composed", COMPOSED)
def test_the_rate_falls_to_its_end_with_the_last_update_whatever_the_onion_does(composed):
    one = Counting(Passes(3))
    Runner(numbers(), *COMPOSED[composed](one)).run(passes=3)
    assert one.optimizer.get_lr() == 0
    assert max(one.rates) > 0.009
    planned = schedules.linear_warmup_and_decay(0.01, len(one.rates))
    for rate in one.rates:
        assert rate == planned()
        planned.step()


@pytest.mark.parametrize(
    "of", [schedules.linear_warmup_and_decay, schedules.palm_linear, schedules.polynomial, schedules.cosine]
)
@pytest.mark.parametrize("warmup", [0.0, 0.2])
def test_over_passes_a_schedule_is_what_it_is_over_their_updates(of, warmup):
    network = toy_network()
    optimizer = paddle.optimizer.SGD(of(0.01, Passes(2), warmup), parameters=network.parameters())
    found, wanted = [], of(0.01, 18, warmup)
    assert optimizer.get_lr() == wanted()
    note = Observer(on_batch_begin=lambda state: found.append(optimizer.get_lr()))
    Runner(numbers(), note, ParameterUpdater(optimizer), GradientMachine(network)).run(passes=2)
    for rate in found:
        assert rate == wanted()
        wanted.step()


@pytest.mark.parametrize("of", [schedules.polynomial, schedules.cosine, schedules.palm_linear])
def test_a_schedule_that_was_not_planned_or_a_warm_up_that_is_no_share_is_an_error(of):
    with pytest.raises(OnionError, match=r"is planned when a ParameterUpdater .* starts to run"):
        of(0.01, Passes(2)).step()
    with pytest.raises(CompositionError, match=r"warmup_ratio must be between 0 and 1 .*, got 2"):
        of(0.01, Passes(2), warmup_ratio=2)


def test_a_run_within_the_run_changes_no_plan():
    one = Counting(Passes(2))
    short = Runner(numbers(4), one.updater, one.machine)
    inner = Observer(on_batch_end=lambda state: short.run(passes=1, parent=state) if state.step == 3 else None)
    Runner(inner, numbers(), one.updater, Accumulate(4), one.machine).run(passes=2)
    assert one.rate.lr_lambda.steps == 2 * 3


def saved_onion(folder, *rings, resume=True, length=None):
    one = Counting(length or Passes(4))
    return one, Runner(Saver(folder, every=2, resume=resume), numbers(), one.updater, *rings, one.machine)


def test_a_planned_rate_resumes_exactly(tmp_path):
    assert_resumes_exactly(lambda folder: saved_onion(folder, Accumulate(4))[1], tmp_path, passes=2)


def test_a_run_that_goes_on_with_another_onion_goes_on_at_the_same_share_of_its_plan(tmp_path, caplog):
    saved_onion(tmp_path)[1].run(steps=18)
    one, runner = saved_onion(tmp_path, Accumulate(4), resume="force")
    runner.run(passes=4)
    assert "planned for 36 updates, and this runner makes 12; it continues as after 6" in caplog.text
    assert one.rates[0] == pytest.approx(0.01 * 6 / 11)  # 1 of 12 to rise in, and 6 of the others are left
    assert one.optimizer.get_lr() == 0


def test_the_rate_that_was_set_by_hand_outlives_a_planned_one(tmp_path):
    one, runner = saved_onion(tmp_path)
    one.updater.set_learning_rate(0.5)
    runner.run(steps=18)
    again, runner = saved_onion(tmp_path)
    runner.run(passes=4)
    assert max(again.rates) > 0.2
    assert again.rates[0] == pytest.approx(0.5 * 18 / 32)


def test_a_checkpoint_of_before_there_were_plans_is_planned(tmp_path):
    """It counts the updates that were made, and has the rates of another plan."""
    saved_onion(tmp_path, Accumulate(4), length=4 * 9)[1].run(steps=6)
    one, runner = saved_onion(tmp_path, Accumulate(4))
    runner.run(passes=4)
    assert len(one.rates) == 6
    assert one.optimizer.get_lr() == 0


def test_an_error_in_the_run_leaves_the_plan_for_the_next(tmp_path):
    one, runner = saved_onion(tmp_path)

    def fail(state):
        if state.step == 5:
            raise PlannedError

    with pytest.raises(PlannedError):
        runner.insert_before(one.updater, Observer(on_batch_begin=fail)).run(passes=4)
    runner.run(passes=4)
    assert one.optimizer.get_lr() == 0
