"""Rates by task: each task rises and falls by its own updates, also in a run that is resumed."""

from itertools import groupby

import paddle
import pytest

from onion import (
    Accumulate,
    CheckpointError,
    CompositionError,
    DataProvider,
    GradientMachine,
    HookError,
    Logger,
    ParameterUpdater,
    Runner,
    Saver,
    TaskData,
    TaskSampler,
    schedules,
)
from onion.multitask.stages import Stages
from onion.testing import assert_resumes_exactly, toy_examples, toy_network


def tasks_by(order):
    return TaskSampler(
        {name: TaskData(DataProvider(toy_examples(8, seed=ord(name)), 4, prefetch=0)) for name in sorted(set(order))},
        Stages.of_table([{name: len([*group])} for name, group in groupby(order)]),
    )


def rates_of(order, schedule, *inside):
    """The (task, rate) of each update."""
    network, seen = toy_network(), []
    optimizer = paddle.optimizer.SGD(schedule, parameters=network.parameters())
    step, updater = optimizer.step, ParameterUpdater(optimizer)
    optimizer.step = lambda: (seen.append((runner.current_run.task, optimizer.get_lr())), step())[1]
    runner = Runner(tasks_by(order), updater, *inside, GradientMachine(network))
    runner.run()
    return seen, updater.log_values()


def test_each_task_has_the_rates_of_a_training_of_its_own():
    order = "aaabbaab"
    seen, told = rates_of(order, schedules.by_task(schedules.noam(0.01, 3)))
    assert "".join(task for task, _ in seen) == order
    for task in "ab":
        alone = [noam(0.01, 3, step) for step in range(order.count(task) + 1)]
        assert [rate for name, rate in seen if name == task] == pytest.approx(alone[:-1])
        assert told[f"learning_rate.{task}"] == pytest.approx(alone[-1])
    assert told["learning_rate"] == told["learning_rate.b"]


def noam(peak, warmup, step):
    return peak * min(((step + 1) / warmup) ** -0.5, (step + 1) / warmup)


def test_the_counts_of_tasks_are_resumed(tmp_path):
    def make(folder):
        paddle.seed(1)
        network = toy_network()
        rate = schedules.by_task(schedules.linear_warmup_and_decay(0.01, 6, 0.5))
        optimizer = paddle.optimizer.AdamW(rate, parameters=network.parameters())
        log = Logger(folder / "metrics.jsonl", 1)
        return Runner(
            Saver(folder, every=3), log, tasks_by("aabbaab"), ParameterUpdater(optimizer), GradientMachine(network)
        )

    assert_resumes_exactly(make, tmp_path)


def plain():
    return schedules.noam(0.1, 4)


def by_task():
    return schedules.by_task(plain())


@pytest.mark.parametrize(
    ("there", "here", "said"),
    [(plain, by_task, "of all, and this one of each task"), (by_task, plain, "of each task, and this one of all")],
    ids=["all, then each", "each, then all"],
)
def test_counts_of_another_kind_are_refused(there, here, said):
    def updater(rate):
        return ParameterUpdater(paddle.optimizer.SGD(rate, parameters=toy_network().parameters()))

    with pytest.raises(CheckpointError, match=said):
        updater(here()).load_state_dict(updater(there()).state_dict())


def test_a_batch_of_no_task_has_no_rate_of_one():
    network = toy_network()
    rate = schedules.by_task(schedules.constant(0.01, 2))
    updater = ParameterUpdater(paddle.optimizer.SGD(rate, parameters=network.parameters()))
    runner = Runner(DataProvider(toy_examples(4), 4), updater, GradientMachine(network))
    with pytest.raises(HookError, match="the batch is of none; provide the data by a TaskSampler"):
        runner.run(passes=1)


def test_an_update_of_several_tasks_has_no_rate_of_one():
    with pytest.raises(CompositionError, match=r"accumulate makes one update of batches of several tasks; make the"):
        rates_of("ab", schedules.by_task(schedules.constant(0.01)), Accumulate(2))


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        (lambda: schedules.cosine(0.1, schedules.Passes(2)), "not one over Passes"),
        (lambda: schedules.by_task(schedules.constant(0.1)), "not ByTask"),
        (lambda: paddle.optimizer.lr.StepDecay(0.1, 3), "not StepDecay"),
        (lambda: 0.1, "not float"),
    ],
    ids=["passes", "by task", "of Paddle", "a number"],
)
def test_only_schedules_over_updates_are_counted_by_task(schedule, said):
    with pytest.raises(CompositionError, match=f"by_task takes a schedule of onion.schedules .*{said}"):
        schedules.by_task(schedule())
