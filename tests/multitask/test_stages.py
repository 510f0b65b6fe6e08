"""Stages: how many batches of each task each stage has, in which order, where the run ends, and what is refused."""

import re
from collections import Counter
from operator import length_hint

import paddle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion import (
    Accumulate,
    CompositionError,
    DataProvider,
    GradientMachine,
    Logger,
    Observer,
    OnionError,
    ParameterUpdater,
    Runner,
    Saver,
    TaskData,
    TaskSampler,
    schedules,
)
from onion.engine.identity import identity_of
from onion.multitask.stages import Stages
from onion.testing import Failing, PlannedError, assert_resumes_exactly, toy_examples, toy_network
from onion.training.updates import updates_in
from tests.multitask.test_task_sampler import drawn, names, task

PAPER = {"mask": 50_000, "capital": 50_000, "document": 50_000, "order": 50_000}
HUNDREDTH = {name: count // 100 for name, count in PAPER.items()}


def sampler(strategy, **settings):
    given = {name for row in strategy.table for name in row}
    return TaskSampler({name: task(3) for name in sorted(given)}, strategy, **settings)


def by_pass(strategy, **limits):
    """How often each task was drawn in each pass, and the State at the end."""
    found, made = Counter(), sampler(strategy)
    note = Observer(on_batch_begin=lambda state: found.update([(state.pass_id, state.task)]))
    state = Runner(made, note).run(**limits)
    return [{name: found[number, name] for name in made.tasks if found[number, name]} for number in range(20)], state


# -- the table ---------------------------------------------------------------------------------------------------------


def test_the_table_is_the_papers():
    assert Stages(PAPER, keep=10_000).table == (
        {"mask": 20_000},
        {"mask": 10_000, "capital": 30_000},
        {"mask": 10_000, "capital": 10_000, "document": 40_000},
        {"mask": 10_000, "capital": 10_000, "document": 10_000, "order": 50_000},
    )
    assert Stages(PAPER, 10_000).total == 200_000


@pytest.mark.parametrize(
    "strategy",
    [Stages(HUNDREDTH, keep=100), Stages.one_by_one(HUNDREDTH), Stages.together(HUNDREDTH)],
    ids=["continual", "one by one", "together"],
)
def test_at_a_hundredth_every_stage_draws_its_exact_counts(strategy):
    found, state = by_pass(strategy)
    assert found[: len(strategy.table)] == [*strategy.table]
    assert (state.step, state.pass_id, state.stopped) == (2000, len(strategy.table), "all stages are done")


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(0, 4))
def test_by_the_rule_every_task_has_all_of_its_batches(more, keep):
    tasks = {f"t{place}": 1 + keep * (len(more) - place - 1) + extra for place, extra in enumerate(more)}
    table = Stages(tasks, keep).table
    assert {name: sum(row.get(name, 0) for row in table) for name in tasks} == tasks
    assert all(row.get(name, 0) == keep for place, name in enumerate(tasks) for row in table[place + 1 :])


def test_a_table_of_ones_own_and_that_of_the_rule_are_the_same_strategy():
    one, other = Stages({"a": 5, "b": 4}, keep=2), Stages.of_table([{"a": 3, "b": 0}, {"b": 4, "a": 2}])
    assert one.table == other.table
    assert identity_of(Runner(sampler(one))) == identity_of(Runner(sampler(other)))
    assert drawn(sampler(one)) == drawn(sampler(other))


# -- the order ---------------------------------------------------------------------------------------------------------


def test_within_a_stage_the_order_is_random_and_depends_on_the_seed_and_the_stage():
    def order(seed, **limits):
        return names(drawn(sampler(Stages.of_table([{"a": 30, "b": 30}] * 2, seed=seed)), **limits))

    first = order(1)
    assert first == order(1) != order(2)
    assert first[:60] != first[60:]
    assert re.search("a{3}", first[:60])
    assert re.search("b{3}", first[:60])
    assert order(1, steps=90) == first[:90]


def test_what_a_stage_lacks_that_an_item_ended_the_next_one_makes_up_for():
    ends = Observer(on_batch_end=lambda state: state.stop_pass("enough") if state.step in (2, 7) else None)
    made = sampler(Stages.of_table([{"a": 5}, {"b": 3}]))
    assert names(drawn(made, ends)) == "aaaaabbb"
    assert made.log_values()["done.b"] == 3


def test_the_data_of_a_task_go_on_from_stage_to_stage():
    seen = drawn(sampler(Stages.of_table([{"a": 2}, {"a": 2, "b": 1}, {"a": 1}])))
    assert [batch for name, batch in seen if name == "a"] == [[0], [1], [2], [0], [1]]


# -- the end -----------------------------------------------------------------------------------------------------------


def test_fewer_passes_leave_stages_for_later_and_more_end_with_the_last(tmp_path):
    strategy = Stages.of_table([{"a": 2}, {"b": 3}, {"a": 1}])
    steps = []
    for passes in (2, 9, 9, None):
        state = Runner(Saver(tmp_path), sampler(strategy)).run(passes=passes)
        steps.append((state.step, state.pass_id, state.stopped))
    done = (6, 3, "all stages are done")
    assert steps == [(5, 2, None), done, done, done]


def test_a_run_by_hand_ends_too():
    with Runner(sampler(Stages.together({"a": 3}))) as runner:
        assert [runner.run_pass().step for _ in range(3)] == [3, 3, 3]


def test_a_second_run_begins_with_the_first_stage():
    made = sampler(Stages({"a": 9, "b": 9}, keep=3))
    assert drawn(made) == drawn(made)


# -- what is told ------------------------------------------------------------------------------------------------------


def test_the_readings_have_the_stage_and_what_is_done_of_what_is_planned():
    made, told = sampler(Stages({"a": 4, "b": 3}, keep=1)), []
    hooks = dict.fromkeys(["initialize", "on_batch_end"], lambda state: told.append(made.log_values()))
    Runner(Observer(**hooks), made).run()
    begin = told.pop(0)
    assert begin == {"examples": 0, "stage": 1, "done.a": 0, "done.b": 0, "planned.a": 4, "planned.b": 3}
    assert [each["stage"] for each in told] == [1, 1, 1, 2, 2, 2, 2]
    assert (told[-1]["done.a"], told[-1]["done.b"], told[-1]["planned.a"], told[-1]["planned.b"]) == (4, 3, 4, 3)
    for each in told:
        assert (each["share.a"], each["share.b"]) == (each["planned_share.a"], each["planned_share.b"])


def test_the_batches_left_are_those_of_the_stage():
    hints = []
    note = Observer(on_batch_begin=lambda state: hints.append(length_hint(state.batches, -1)))
    Runner(sampler(Stages.of_table([{"a": 2}, {"a": 1, "b": 2}])), note).run()
    assert hints == [1, 0, 2, 1, 0]


def test_a_rate_over_passes_is_planned_for_the_batches_of_all_stages():
    made = sampler(Stages({"a": 9, "b": 9}, keep=3))
    assert [made.batches_in(number) for number in range(-1, 4)] == [0, 6, 12, 0, 0]
    assert made.batches_per_pass is None
    assert sampler(Stages.one_by_one({"a": 9, "b": 9})).batches_per_pass == 9
    network = toy_network()
    tasks = {name: TaskData(DataProvider(toy_examples(8), 4, prefetch=0)) for name in "ab"}
    rate = schedules.linear_warmup_and_decay(0.1, schedules.Passes(2))
    updater = ParameterUpdater(paddle.optimizer.SGD(rate, parameters=network.parameters()))
    runner = Runner(TaskSampler(tasks, made.strategy), updater, GradientMachine(network))
    assert [updates_in(schedules.Passes(passes), updater, runner) for passes in (1, 2, 5)] == [6, 18, 18]
    runner.run()
    assert updater.optimizer.get_lr() == 0


def test_a_group_of_batches_ends_with_its_stage():
    network, sizes = toy_network(), []
    tasks = {name: TaskData(DataProvider(toy_examples(8), 4, prefetch=0)) for name in "ab"}
    made = TaskSampler(tasks, Stages({"a": 7, "b": 5}, keep=2))
    updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))
    note = Observer(on_batch_end=lambda state: sizes.append((state.pass_id, made.log_values()["examples"] // 4)))
    state = Runner(note, made, updater, Accumulate(3), GradientMachine(network)).run()
    assert sizes == [(0, 3), (0, 5), (1, 8), (1, 11), (1, 12)]
    assert (state.step, state.stopped) == (5, "all stages are done")


def test_streams_have_stages_too():
    tasks = {"a": TaskData(DataProvider(lambda: range(2), 1, collate=list, prefetch=0)), "b": task(1)}
    assert names(drawn(TaskSampler(tasks, Stages.of_table([{"a": 5}, {"b": 2}])))) == "aaaaabb"


def test_there_are_no_weights_to_set():
    made = sampler(Stages.together({"a": 3}))
    assert made.adjustable() == {}
    with pytest.raises(OnionError, match="draws the exact batches of its stages, in which tasks have no weights"):
        made.set_weight("a", 2.0)


# -- what is refused ---------------------------------------------------------------------------------------------------

NO_STAGES = [
    ("takes batches by task, {'name': 50_000, ...}, got []", lambda: Stages([], 1)),
    ("takes batches by task", lambda: Stages({}, 1)),
    ("takes batches by task", lambda: Stages.together(["a"])),
    ("keep must be a number of batches >= 0, got -1", lambda: Stages({"a": 3}, -1)),
    ("keep must be a number of batches >= 0, got 1.0", lambda: Stages({"a": 3}, 1.0)),
    ("keep must be a number of batches >= 0, got True", lambda: Stages({"a": 3}, True)),
    (
        "the task 'a' has 6 batches, but 3 in each of 2 later stages leave none for its first; give it an integer",
        lambda: Stages({"a": 6, "b": 9, "c": 9}, keep=3),
    ),
    ("the task 'b' has 0 batches", lambda: Stages({"a": 3, "b": 0}, keep=1)),
    ("the task 'b' has -1 batches", lambda: Stages.one_by_one({"a": 3, "b": -1})),
    ("the task 'b' has 2.5 batches", lambda: Stages({"a": 3, "b": 2.5}, keep=1)),
    ("stage 1 has -2 batches of the task 'a'", lambda: Stages.together({"a": -2})),
    ("stage 1 has True batches of the task 'a'", lambda: Stages.together({"a": True})),
    ("stage 1 has 2 batches of the task 1", lambda: Stages.together({1: 2})),
    ("the table must be a list of stages", lambda: Stages.of_table([])),
    ("the table must be a list of stages", lambda: Stages.of_table({"a": 1})),
    ("stage 2 is a int", lambda: Stages.of_table([{"a": 1}, 5])),
    ("stage 2 has no batch; leave it out", lambda: Stages.of_table([{"a": 1}, {"a": 0}])),
    ("seed must be an integer >= 0, got -1", lambda: Stages({"a": 3}, 1, seed=-1)),
]


@pytest.mark.parametrize(("said", "make"), NO_STAGES, ids=[said for said, _ in NO_STAGES])
def test_what_makes_no_stages_is_refused(said, make):
    with pytest.raises(CompositionError, match=re.escape(said)):
        make()


AB = Stages.together({"a": 3, "b": 3})
NO_SAMPLER = [
    ("Stages has batches of the task 'b', which the sampler does not have; it has a.", {"a": task(3)}, {}),
    (
        "Stages has no batch of the task 'c', which would never be drawn; give it some",
        {name: task(3) for name in "abc"},
        {},
    ),
    ("the task 'b' has the mix_ratio 0.5, but the stages of the strategy", {"a": task(3), "b": task(3, 0.5)}, {}),
    (
        "the task 'b' is auxiliary, but every stage waits for all of its tasks",
        {"a": task(3), "b": task(3, target=False)},
        {},
    ),
    (
        "reference='a', but a pass is a stage of the strategy; leave reference out",
        {"a": task(3), "b": task(3)},
        {"reference": "a"},
    ),
]


@pytest.mark.parametrize(("said", "tasks", "settings"), NO_SAMPLER, ids=[said for said, *_ in NO_SAMPLER])
def test_a_sampler_of_other_tasks_or_with_settings_that_mean_nothing_is_refused(said, tasks, settings):
    with pytest.raises(CompositionError, match=re.escape(said)):
        Runner(TaskSampler(tasks, AB, **settings))


# -- resumption --------------------------------------------------------------------------------------------------------


def learning(folder):
    paddle.seed(2)
    network = toy_network()
    tasks = {
        name: TaskData(DataProvider(toy_examples(7, seed=ord(name)), 4, shuffle=True, prefetch=0)) for name in "abc"
    }
    optimizer = paddle.optimizer.AdamW(0.02, parameters=network.parameters())
    return Runner(
        Saver(folder, every=2),
        Logger(folder / "metrics.jsonl", 1),
        TaskSampler(tasks, Stages({"a": 6, "b": 4, "c": 3}, keep=1)),
        ParameterUpdater(optimizer),
        GradientMachine(network),
    )


def test_a_run_resumes_exactly_at_every_border_and_inside(tmp_path):
    """Its stages end after steps 4, 8 and 13."""
    assert_resumes_exactly(learning, tmp_path, cuts=range(1, 13))


def test_a_run_that_fails_in_a_stage_resumes_in_it(tmp_path):
    whole = drawn(sampler(Stages({"a": 6, "b": 4}, keep=1)))
    seen = []
    note = Observer(on_batch_end=lambda state: seen.append((state.task, state.batch)))
    for failing in ([Failing("on_batch", "in", 7)], []):
        runner = Runner(Saver(tmp_path, every=1), note, sampler(Stages({"a": 6, "b": 4}, keep=1)), *failing)
        if failing:
            with pytest.raises(PlannedError):
                runner.run()
        else:
            runner.run()
    assert seen == whole
