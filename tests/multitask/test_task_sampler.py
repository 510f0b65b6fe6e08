"""TaskSampler: whose batch comes when, where a pass ends, what is told, refused and taken up again."""

import itertools
import json
import re
import threading
from operator import length_hint

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion import (
    CheckpointError,
    CompositionError,
    DataError,
    DataProvider,
    Evaluator,
    Forward,
    GradientMachine,
    HookError,
    Logger,
    Observer,
    OnionError,
    ParameterUpdater,
    Progress,
    Runner,
    RunnerItem,
    Saver,
    State,
    TaskData,
    TaskSampler,
    Tester,
)
from onion.multitask.strategies import (
    ByLoss,
    BySize,
    ByStep,
    MixRatio,
    RoundRobin,
    Strategy,
    Temperature,
    Uniform,
    Weights,
)
from onion.testing import Failing, PlannedError, toy_examples, toy_network


def data(batches, **options):
    """A provider of so many batches a pass, [0], [1], ..."""
    return DataProvider(list(range(batches)), 1, **{"prefetch": 0, "collate": list, **options})


def drawn(sampler, *items, **limits):
    """The (task, batch) of every batch of a run."""
    seen = []
    note = Observer(on_batch_begin=lambda state: seen.append((state.task, state.batch)))
    Runner(sampler, *items, note).run(**limits)
    return seen


def names(seen):
    return "".join(task for task, _ in seen)


def turns(word):
    return ByStep(lambda step: word[step % len(word)])


# -- whose batch -------------------------------------------------------------------------------------------------------


def test_every_batch_is_of_one_task_and_the_state_says_of_which():
    seen = drawn(TaskSampler({"a": TaskData(data(3)), "b": TaskData(data(3))}, RoundRobin()), passes=1)
    assert seen == [("a", [0]), ("b", [0]), ("a", [1]), ("b", [1]), ("a", [2]), ("b", [2])]


def test_outer_items_see_the_task_on_both_ways_and_nobody_after_the_pass():
    seen = []
    note = Observer(
        on_batch_begin=lambda state: seen.append(state.task),
        on_batch_end=lambda state: seen.append(state.task),
        on_pass_end=lambda state: seen.append(state.task),
    )
    Runner(note, TaskSampler({"a": TaskData(data(1)), "b": TaskData(data(1))}, RoundRobin())).run(passes=1)
    assert seen == ["a", "a", "b", "b", None]


def test_each_task_goes_through_passes_of_its_own_in_an_order_of_its_own():
    providers = {"a": data(4, shuffle=True, seed=1), "b": data(3, shuffle=True, seed=2, prefetch=2)}
    seen = drawn(TaskSampler({"a": TaskData(providers["a"]), "b": TaskData(providers["b"])}, RoundRobin()), passes=3)
    for name, provider in providers.items():
        own = [batch for task, batch in seen if task == name]
        expected = [batch for number in range(5) for batch in provider.loader.batches(number)]
        assert own == expected[: len(own)]
        assert len(own) == 12


def test_an_item_that_takes_further_batches_from_the_pass_finds_their_task_on_the_state():
    """As one that puts several small batches together does."""
    seen = []

    class Pairs(RunnerItem):
        def on_batch(self, state):
            seen.append(state.task)
            yield
            for state.batch in itertools.islice(state.batches, 1):  # noqa: B020 - a field is the loop's variable
                seen.append(state.task)
                yield

    state = Runner(TaskSampler({"a": TaskData(data(3)), "b": TaskData(data(3))}, RoundRobin()), Pairs()).run(passes=1)
    assert "".join(seen) == "ababab"
    assert state.step == 3


def test_the_choice_depends_on_the_seed_alone_and_draws_from_no_global_generator():
    def order(seed):
        np.random.seed(np.random.randint(1000))
        return names(drawn(TaskSampler({"a": TaskData(data(40)), "b": TaskData(data(40))}, seed=seed), passes=1))

    before = json.dumps(np.random.get_state(legacy=True)[1].tolist())
    first = names(drawn(TaskSampler({"a": TaskData(data(40)), "b": TaskData(data(40))}, seed=1), passes=1))
    assert json.dumps(np.random.get_state(legacy=True)[1].tolist()) == before
    assert order(1) == first
    assert order(2) != first


def test_a_second_run_begins_anew():
    sampler = TaskSampler({"a": TaskData(data(5)), "b": TaskData(data(3))}, RoundRobin())
    first = drawn(sampler, steps=3)
    assert drawn(sampler, steps=3) == first


# -- where a pass ends -------------------------------------------------------------------------------------------------


def counts(sampler, passes):
    """How many batches of each task had been drawn at the end of each pass."""
    found, seen = [], []
    note = Observer(
        on_batch_begin=lambda state: seen.append(state.task),
        on_pass_end=lambda state: found.append({name: seen.count(name) for name in sampler.tasks}),
    )
    Runner(sampler, note).run(passes=passes)
    return found


def test_a_pass_is_one_over_the_first_target():
    tasks = {"x": TaskData(data(9), target=False), "a": TaskData(data(4)), "b": TaskData(data(50), 0.5)}
    assert [each["a"] for each in counts(TaskSampler(tasks, finished="stop"), 3)] == [4, 8, 12]


def test_a_pass_is_one_over_the_reference_that_is_named():
    tasks = {"a": TaskData(data(4), 0.5), "b": TaskData(data(10), target=False)}
    found = counts(TaskSampler(tasks, reference="b", finished="stop"), 3)
    assert [each["a"] for each in found] == [5, 10, 15]


@pytest.mark.parametrize(("ratio", "planned"), [(0.35, [3, 7, 10, 14]), (1.0, [10, 20, 30, 40]), (1.25, [12, 25, 37])])
def test_batches_are_planned_cumulatively_as_palm_plans_them(ratio, planned):
    sampler = TaskSampler({"a": TaskData(data(10)), "b": TaskData(data(7), ratio)}, finished="stop")
    assert [each["b"] for each in counts(sampler, len(planned))] == planned


def test_a_pass_waits_for_every_target_and_a_finished_one_is_drawn_on():
    tasks = {"a": TaskData(data(2)), "b": TaskData(data(2))}
    assert names(drawn(TaskSampler(tasks, turns("aaaab")), passes=1)) == "aaaabaaaab"


def test_a_finished_target_may_stop():
    tasks = {"a": TaskData(data(2)), "b": TaskData(data(2))}
    strategy = ByStep(lambda step: {"a": 1.0} if step < 2 else {"a": 1e9, "b": 1e-9})
    assert names(drawn(TaskSampler(tasks, strategy, finished="stop"), passes=1)) == "aabb"


def test_what_was_drawn_too_often_in_a_pass_counts_in_the_next():
    tasks = {"a": TaskData(data(4)), "b": TaskData(data(4))}
    strategy = ByStep(lambda step: "aaaaaabbbbabababab"[step])
    found = counts(TaskSampler(tasks, strategy), 2)
    assert found == [{"a": 6, "b": 4}, {"a": 10, "b": 8}]


def test_an_auxiliary_task_never_holds_a_pass_back():
    tasks = {"a": TaskData(data(5)), "x": TaskData(data(100), 1e6, target=False)}
    assert names(drawn(TaskSampler(tasks, Weights({"a": 1, "x": 1e-12})), passes=2)) == "a" * 10


def test_an_auxiliary_task_is_drawn_on_where_targets_stop():
    tasks = {"a": TaskData(data(1)), "b": TaskData(data(2), 1.0), "x": TaskData(data(1), 0.1, target=False)}
    strategy = ByStep(lambda step: {"a": 1.0} if step < 1 else {"a": 1.0, "x": 1.0} if step < 6 else {"b": 1.0})
    assert names(drawn(TaskSampler(tasks, strategy, finished="stop"), passes=1)) == "axxxxxb"


def test_what_a_pass_lacks_that_an_item_ended_the_next_one_makes_up_for():
    ends = Observer(on_batch_end=lambda state: state.stop_pass("enough") if state.step == 1 else None)
    assert names(drawn(TaskSampler({"a": TaskData(data(3))}), ends, passes=2)) == "a" * 6


def test_a_batch_that_an_item_skips_was_drawn_and_counts_no_step():
    class SkipB(RunnerItem):
        def on_batch(self, state):
            if state.task != "b":
                yield

    sampler = TaskSampler({"a": TaskData(data(3)), "b": TaskData(data(3))}, RoundRobin())
    seen = []
    inside = Observer(on_batch_begin=lambda state: seen.append(state.task))
    state = Runner(sampler, SkipB(), inside).run(passes=1)
    assert ("".join(seen), state.step) == ("aaa", 3)
    assert state.metrics["share.b"] == 0.5


def test_a_batch_that_is_run_again_draws_no_other_and_no_chance():
    class Twice(RunnerItem):
        def on_batch(self, state):
            yield
            yield

    def tasks():
        return {"a": TaskData(data(20)), "b": TaskData(data(20))}

    once = TaskSampler(tasks(), seed=3)
    expected = drawn(once, passes=2)
    seen = drawn(again := TaskSampler(tasks(), seed=3), Twice(), passes=2)
    assert seen[::2] == seen[1::2] == expected
    assert again.state_dict() == once.state_dict()


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.floats(0.1, 4), st.booleans()), min_size=1, max_size=4),
    st.sampled_from([MixRatio, BySize, Uniform, RoundRobin, Temperature, ByLoss]),
    st.sampled_from(["sampled", "stop"]),
    st.integers(0, 5),
)
def test_at_every_pass_end_each_target_has_its_plan_and_one_has_just_got_it(tasks, strategy, finished, seed):
    made = {str(i): TaskData(data(size), ratio, target) for i, (size, ratio, target) in enumerate(tasks)}
    made["r"] = TaskData(data(10))
    sampler = TaskSampler(made, strategy(), seed=seed, reference="r", finished=finished)
    hints, last = [], []
    note = Observer(
        on_batch_begin=lambda state: (hints.append(length_hint(state.batches, -1)), last.append(state.task)),
    )
    state = Runner(sampler, note)
    passes = 3
    found = counts(sampler, passes)
    state.run(passes=passes)
    for number, got in enumerate(found, start=1):
        for name, task in made.items():
            planned = int(number * task.mix_ratio * 10)
            if task.target:
                assert got[name] >= planned
                assert finished == "sampled" or got[name] == planned
    task = made[last[-1]]
    assert task.target
    assert found[-1][last[-1]] == int(passes * task.mix_ratio * 10)
    assert hints.count(0) == passes, "the hint is 0 after the last batch of a pass, and only there"


# -- shares ------------------------------------------------------------------------------------------------------------

MIXED = {"a": (100, 1.0, True), "b": (30, 0.5, True), "c": (7, 2.0, False)}


def mixed():
    return {name: TaskData(data(size), ratio, target) for name, (size, ratio, target) in MIXED.items()}


SHARES = {
    "mix ratio": (MixRatio(), {"a": 1, "b": 0.5, "c": 2}),
    "size": (BySize(), {"a": 100, "b": 30, "c": 7}),
    "temperature": (Temperature(2), {"a": 10, "b": 30**0.5, "c": 7**0.5}),
    "uniform": (Uniform(), {"a": 1, "b": 1, "c": 1}),
    "weights": (Weights({"a": 1, "b": 8, "c": 1}), {"a": 1, "b": 8, "c": 1}),
    "by step": (ByStep(lambda step: {"a": 1, "b": 2 * (step % 2), "c": 1}), {"a": 3, "b": 2, "c": 3}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARES)
def test_over_100000_draws_the_shares_are_within_1_percent_of_the_planned_ones(name):
    strategy, weights = SHARES[name]
    sampler = TaskSampler(mixed(), strategy, seed=5)
    Runner(sampler).run(steps=100_000)
    told = sampler.log_values()
    for task, weight in weights.items():
        planned = weight / sum(weights.values())
        assert told[f"planned_share.{task}"] == pytest.approx(planned, abs=1e-9)
        assert abs(told[f"share.{task}"] - planned) < 0.01


def test_round_robin_is_exact():
    sampler = TaskSampler(mixed(), RoundRobin())
    Runner(sampler).run(steps=99_999)
    told = sampler.log_values()
    for task in MIXED:
        assert told[f"share.{task}"] == told[f"planned_share.{task}"] == pytest.approx(1 / 3, abs=1e-15)


def test_palms_expected_batches_come_within_1_percent():
    """A task gets about passes x mix_ratio x batches a pass of the reference."""
    tasks = {
        "a": TaskData(data(1000)),
        "b": TaskData(data(300), 0.5, target=False),
        "c": TaskData(data(50), 0.25, target=False),
    }
    found = counts(TaskSampler(tasks, seed=2), 20)[-1]
    assert found["a"] == 20_000
    assert found["b"] == pytest.approx(10_000, rel=0.02)
    assert found["c"] == pytest.approx(5_000, rel=0.02)


def test_shares_are_reported_at_the_end_of_a_pass_and_not_of_one_that_was_cut():
    sampler = TaskSampler({"a": TaskData(data(4)), "b": TaskData(data(4))}, RoundRobin())
    assert Runner(sampler).run(steps=3).metrics == {}
    state = Runner(sampler).run(passes=1)
    assert state.metrics == dict.fromkeys(["share.a", "share.b", "planned_share.a", "planned_share.b"], 0.5)
    assert set(state.reported.values()) == {8}


def test_readings_count_the_examples_of_all_tasks():
    sampler = TaskSampler({"a": TaskData(data(4)), "b": TaskData(DataProvider(list(range(9)), 5))}, RoundRobin())
    assert sampler.log_values() == {"examples": 0}
    Runner(sampler).run(steps=4)
    assert sampler.log_values()["examples"] == 1 + 5 + 1 + 4


# -- costs -------------------------------------------------------------------------------------------------------------


class Costs(RunnerItem):
    """Leave costs that know how often they were read."""

    def __init__(self, values):
        self.values, self.reads = values, []

    def on_batch(self, state):
        item, value = self, self.values[state.task]

        class Cost:
            def __float__(self):
                item.reads.append(value)
                return value

        state.loss = Cost()


def test_the_readings_have_every_tasks_latest_loss_and_nobody_reads_it_before():
    losses = Costs({"a": 1.0, "b": 2.0})
    sampler = TaskSampler({"a": TaskData(data(2)), "b": TaskData(data(2))}, RoundRobin())
    Runner(sampler, losses).run(passes=1)
    assert losses.reads == []
    told = sampler.log_values()
    assert (told["loss.a"], told["loss.b"]) == (1.0, 2.0)


def test_a_skipped_batch_leaves_no_loss():
    class SkipB(RunnerItem):
        def on_batch(self, state):
            if state.task != "b":
                yield

    sampler = TaskSampler({"a": TaskData(data(2)), "b": TaskData(data(2))}, RoundRobin())
    Runner(sampler, SkipB(), Costs({"a": 1.0})).run(passes=1)
    assert "loss.b" not in sampler.log_values()


def test_tasks_that_learn_slowly_are_drawn_more_often():
    class Learns(RunnerItem):
        """The loss of task a falls to nothing, that of b not at all."""

        def on_batch(self, state):
            state.loss = 0.9**state.step if state.task == "a" else 3.0

    tasks = {"a": TaskData(data(400), target=False), "b": TaskData(data(400))}
    sampler = TaskSampler(tasks, ByLoss(), seed=1)
    Runner(sampler, Learns()).run(passes=3)
    told = sampler.log_values()
    assert told["share.b"] > 0.8
    assert told["share.a"] == pytest.approx(told["planned_share.a"], abs=0.02)


def test_costs_are_read_so_many_batches_late():
    losses = Costs({"a": 1.0})
    Runner(TaskSampler({"a": TaskData(data(10))}, ByLoss(lag=4)), losses).run(passes=1)
    assert len(losses.reads) == 6


# -- threads -----------------------------------------------------------------------------------------------------------


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("onion")]


def threaded():
    return TaskSampler({name: TaskData(data(50, prefetch=3)) for name in "abc"}, RoundRobin())


@pytest.mark.parametrize("way", ["in", "out"])
@pytest.mark.parametrize("hook", ["initialize", "on_pass", "on_batch"])
def test_no_thread_of_any_task_outlives_an_error(hook, way):
    with pytest.raises(PlannedError):
        Runner(threaded(), Failing(hook, way, step=4 if hook == "on_batch" else 0)).run(passes=1 if way == "in" else 2)
    assert threads() == []


def test_no_thread_outlives_a_pass_or_a_cut_run():
    alive = []

    def look(state):
        alive.append(threads())

    Runner(Observer(on_pass_end=look, on_batch_end=look), threaded()).run(steps=160)
    assert alive.pop(150) == []
    assert all(alive[:100])
    assert threads() == []


def test_no_thread_outlives_an_error_in_the_data_of_one_task():
    def broken():
        yield from range(3)
        raise DataError("line 4 is broken")

    tasks = {"a": TaskData(data(50, prefetch=3)), "b": TaskData(DataProvider(broken, 1, collate=list))}
    seen = []
    note = Observer(on_batch_begin=lambda state: seen.append(state.task))
    with pytest.raises(DataError, match="line 4 is broken"):
        Runner(TaskSampler(tasks, RoundRobin()), note).run(passes=1)
    assert "".join(seen) == "abababa"
    assert threads() == []


def test_all_are_closed_though_one_cannot_be():
    class Stuck(RunnerItem):
        def on_batch(self, state):
            feeds[0].close = self.fail

        def fail(self):
            raise PlannedError("close")

    sampler = threaded()
    feeds = []
    grab = Observer(initialize=lambda state: feeds.extend(sampler._feeds.values()))
    with pytest.raises(PlannedError):
        Runner(sampler, grab, Stuck()).run(steps=5)
    type(feeds[0]).close(feeds[0])
    assert threads() == []


# -- what is refused ---------------------------------------------------------------------------------------------------

A = TaskData(data(4))
REFUSED = {
    "no tasks": ({"tasks": {}}, "there are no tasks"),
    "a ratio of 0": (
        {"tasks": {"a": TaskData(data(4), 0)}},
        "the mix_ratio of the task 'a' is 0; it is a number above 0",
    ),
    "a negative ratio": ({"tasks": {"a": A, "b": TaskData(data(4), -1.0)}}, "the mix_ratio of the task 'b' is -1.0"),
    "a ratio that is no number": ({"tasks": {"a": TaskData(data(4), float("nan"))}}, "is nan"),
    "a ratio without an end": (
        {"tasks": {"a": TaskData(data(4), 1e300)}},
        "is 1e+300; it is a number above 0, at most 1e9",
    ),
    "a ratio in words": (
        {"tasks": {"a": TaskData(data(4), "1")}},
        "the mix_ratio of the task 'a' is '1'; it is a number",
    ),
    "no ratio": ({"tasks": {"a": TaskData(data(4), None)}}, "the mix_ratio of the task 'a' is None"),
    "a switch as a ratio": ({"tasks": {"a": TaskData(data(4), True)}}, "the mix_ratio of the task 'a' is True"),
    "a name that is a number": ({"tasks": {1: A}}, "the task 1 has a int for a name; write it as a text, '1'"),
    "a class as a strategy": (
        {"tasks": {"a": A}, "strategy": Uniform},
        "strategy is the class Uniform: write Uniform(",
    ),
    "a name as a strategy": ({"tasks": {"a": A}, "strategy": "uniform"}, "the strategy is a str; use one of onion"),
    "a function as a strategy": ({"tasks": {"a": A}, "strategy": len}, "the strategy is a builtin_function_or_method"),
    "a target that never comes": (
        {"tasks": {"a": A, "b": TaskData(data(4), target=False)}, "strategy": ByStep(lambda step: "b")},
        "ByStep would not finish the target 'a' (batches in a pass: 4) in 1000 times the 8 batches that are planned",
    ),
    "a target that hardly comes": (
        {"tasks": {"a": A, "b": A}, "strategy": Weights({"a": 1, "b": 1e-300})},
        "Weights would not finish the target 'b'",
    ),
    "an infinite ratio": ({"tasks": {"a": TaskData(data(4), float("inf"))}}, "is inf"),
    "a task without data": ({"tasks": {"a": A, "b": TaskData(None)}}, "the task 'b' has no data; give it a Task"),
    "a provider without a task": ({"tasks": {"a": data(4)}}, "the task 'a' has no data"),
    "auxiliary tasks only": ({"tasks": {"a": TaskData(data(4), target=False)}}, "all tasks are auxiliary"),
    "an unknown reference": ({"tasks": {"a": A}, "reference": "z"}, "reference='z' is none of the tasks a"),
    "a stream as reference": (
        {"tasks": {"a": TaskData(DataProvider(lambda: range(4)))}},
        "the reference task 'a' is a stream, whose pass has no known length",
    ),
    "a stream as named reference": (
        {"tasks": {"a": A, "s": TaskData(DataProvider(lambda: range(4)))}, "reference": "s"},
        "the reference task 's' is a stream",
    ),
    "a target without a batch": (
        {"tasks": {"a": A, "b": TaskData(data(4), 0.2)}},
        "of the target 'b' not one batch is planned in a pass, as mix_ratio=0.2 of 4 batches of 'a' is less",
    ),
    "a target of weight 0": (
        {"tasks": {"a": A, "b": A}, "strategy": Weights({"a": 1, "b": 0})},
        "Weights gives the task 'b' the weight 0, so it would never be finished",
    ),
    "a strategy that does not know a task": ({"tasks": {"a": A}, "strategy": Weights({"b": 1})}, "the tasks are a."),
    "a function that names no task": ({"tasks": {"a": A}, "strategy": ByStep(lambda step: "z")}, "gave the task 'z'"),
    "a choice that is none": (
        {"tasks": {"a": A}, "finished": "ends"},
        "finished='ends' is neither 'sampled'",
    ),
    "a negative seed": ({"tasks": {"a": A}, "seed": -1}, "seed=-1 is below 0"),
    "a broken seed": ({"tasks": {"a": A}, "seed": 1.5}, "seed=1.5 is no whole number"),
    "a seed in words": ({"tasks": {"a": A}, "seed": "1"}, "seed='1' is no whole number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_trained_is_refused_when_the_onion_is_built_with_its_drawing(name):
    arguments, said = REFUSED[name]
    with pytest.raises(CompositionError, match=re.escape(said)) as refused:
        Runner(TaskSampler(**arguments))
    assert "task_sampler  TaskSampler(" in str(refused.value)


@pytest.mark.parametrize("tasks", [[A], None, A])
def test_tasks_come_by_name(tasks):
    with pytest.raises(CompositionError, match=r"TaskSampler: tasks must be a dict, .* not a "):
        TaskSampler(tasks)


def test_a_weight_that_is_next_to_nothing_does_where_finished_targets_stop():
    tasks = {"a": TaskData(data(2)), "b": TaskData(data(2))}
    sampler = TaskSampler(tasks, Weights({"a": 1, "b": 1e-300}), finished="stop")
    assert names(drawn(sampler, passes=1)) == "aabb"


@pytest.mark.parametrize("others", [lambda: data(4), lambda: TaskSampler({"b": A}), lambda: Runner(data(4))])
@pytest.mark.parametrize("first", [True, False])
def test_no_other_item_brings_data(others, first):
    items = [TaskSampler({"a": A}), others()]
    with pytest.raises(CompositionError, match="provides data too, and only the inner one would be read; remove one"):
        Runner(*(items if first else items[::-1]))


class Never(Strategy):
    """Nobody can foresee what it does."""

    def weights(self, step, names):
        return {"b": 1.0}


def test_a_pass_without_an_end_is_an_error_that_names_the_target():
    tasks = {"a": TaskData(data(2)), "b": TaskData(data(1), 0.5, target=False)}
    seen = []
    note = Observer(on_batch_begin=lambda state: seen.append(state.task))
    said = r"has drawn 1000 times the batches that .*, and still lacks 2 of the target 'a'\. Never gives it too little"
    with pytest.raises(HookError, match=said):
        Runner(TaskSampler(tasks, Never()), note).run(passes=1)
    assert seen == ["b"] * 1000 * 3


def test_the_limit_of_a_pass_is_its_own():
    """What earlier passes drew does not count, nor how little of its plan a pass still lacks."""

    class Late(Strategy):
        def weights(self, step, names):
            return {"b": 1.0} if step % 2000 else {"a": 1.0}

    tasks = {"a": TaskData(data(1)), "b": TaskData(data(1), target=False)}
    assert Runner(TaskSampler(tasks, Late())).run(passes=4).step == 6001
    with pytest.raises(HookError, match="still lacks 1 of the target 'a'"):
        Runner(TaskSampler({"a": tasks["a"]} | {"b": TaskData(data(1), 0.4, target=False)}, Late())).run(passes=2)


def test_broken_data_says_of_which_task():
    tasks = {"a": A, "b": TaskData(DataProvider(lambda: iter(()), prefetch=0), target=False)}
    with pytest.raises(DataError, match=r"task_sampler, the task 'b', pass 0, batch 0 .*: the data source returned no"):
        Runner(TaskSampler(tasks, RoundRobin())).run(passes=1)


def test_data_that_is_empty_is_refused_by_its_provider():
    with pytest.raises(DataError, match="is empty"):
        TaskData(DataProvider([]))


def test_an_auxiliary_task_may_be_a_stream_and_planned_to_nothing():
    tasks = {"a": A, "s": TaskData(DataProvider(lambda: range(4), 1, collate=list), 0.01, target=False)}
    assert names(drawn(TaskSampler(tasks, turns("as")), passes=1)) == "asasasa"


def test_a_network_that_lacks_a_head_is_refused_by_name():
    class Heads(paddle.nn.Layer):
        tasks = ("a", "c")

        def loss(self, outputs, batch):
            return outputs

    with pytest.raises(CompositionError, match="has the task 'b', for which the network of gradient_machine has no"):
        Runner(TaskSampler({"a": A, "b": A}), GradientMachine(Heads()))
    Runner(TaskSampler({"a": A}), GradientMachine(Heads()))
    Runner(TaskSampler({"a": A, "b": A}), GradientMachine(toy_network()))


def test_to_check_again_does_not_begin_again():
    """A Runner made of another one, such as by without(), checks the items that both share."""
    sampler = TaskSampler({"a": TaskData(data(9)), "b": TaskData(data(9))}, RoundRobin())
    again = Observer(on_batch_end=lambda state: Runner(sampler) if state.step == 3 else None)
    assert names(drawn(sampler, again, steps=6)) == "ababab"


# -- resumption --------------------------------------------------------------------------------------------------------


class TwoHeads(paddle.nn.Layer):
    def __init__(self, seed):
        super().__init__()
        paddle.seed(seed)
        self.body = paddle.nn.Linear(8, 6)
        self.heads = paddle.nn.LayerDict({name: paddle.nn.Linear(6, 1) for name in "abc"})

    def forward(self, batch):
        return self.heads[batch["task"]](paddle.tanh(self.body(batch["x"])))

    def loss(self, outputs, batch):
        return paddle.nn.functional.mse_loss(outputs, batch["y"])


STRATEGIES = {
    "mix ratio": MixRatio,
    "size": BySize,
    "temperature": lambda: Temperature(3),
    "uniform": Uniform,
    "weights": lambda: Weights({"a": 1, "b": 2, "c": 3}),
    "round robin": RoundRobin,
    "by step": lambda: ByStep(lambda step: {"a": 1.0, "b": 0.3 + 0.9**step, "c": 0.5}),
    "by name": lambda: ByStep(lambda step: "abc"[step * step % 3]),
    "by loss": lambda: ByLoss(rate=0.4, power=3, lag=5),
}


def training(folder, strategy, finished, seed=0):
    network = TwoHeads(seed)
    schedule = paddle.optimizer.lr.LinearWarmup(paddle.optimizer.lr.PolynomialDecay(0.1, 40), 4, 0.0, 0.1)
    clip = paddle.nn.ClipGradByGlobalNorm(1.0)
    optimizer = paddle.optimizer.AdamW(schedule, parameters=network.parameters(), grad_clip=clip)
    tasks = {
        "a": TaskData(DataProvider(toy_examples(22, seed=1), 4, shuffle=True, seed=1)),
        "b": TaskData(DataProvider(toy_examples(9, seed=2), 3, shuffle=True, seed=2, prefetch=0), 0.5),
        "c": TaskData(DataProvider(toy_examples(7, seed=3), 2, prefetch=3), 0.7, target=False),
    }
    if not isinstance(strategy, Temperature):  # which asks for sizes
        tasks["c"] = TaskData(DataProvider(lambda: iter(toy_examples(7, seed=3)), 2, prefetch=3), 0.7, target=False)
    sampler = TaskSampler(tasks, strategy, seed=9, reference="a", finished=finished)
    return Runner(
        Saver(folder, every=5),
        Logger(folder / "metrics.jsonl", 1),
        sampler,
        ParameterUpdater(optimizer),
        GradientMachine(network),
    )


def result(runner, folder, **limits):
    state = runner.run(**limits)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row.pop("seconds")
    sampler = runner[TaskSampler].state_dict()
    values = {n: t.numpy().tobytes() for n, t in runner[GradientMachine].network.state_dict().items()}
    return state.step, state.metrics, sampler, values, rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "finished"),
    # A function that says "a" while a has stopped cannot be followed; this is an error (see above).
    [case for case in itertools.product(STRATEGIES, ["sampled", "stop"]) if case != ("by name", "stop")],
)
def test_a_run_that_was_cut_anywhere_goes_on_to_the_same_bits(name, finished, tmp_path):
    uncut = result(training(tmp_path / "uncut", STRATEGIES[name](), finished), tmp_path / "uncut", passes=2)
    for cut in (4, 9):
        folder = tmp_path / f"cut-{cut}"
        training(folder, STRATEGIES[name](), finished).run(steps=cut)
        runner = training(folder, STRATEGIES[name](), finished, seed=1)
        assert result(runner, folder, passes=2) == uncut
    assert threads() == []


@pytest.mark.parametrize("step", [7, 11, 15])
def test_a_run_that_was_killed_by_an_error_goes_on_to_the_same_bits(step, tmp_path):
    uncut = result(training(tmp_path / "uncut", ByLoss(), "sampled"), tmp_path / "uncut", passes=2)
    folder = tmp_path / "killed"
    with pytest.raises(PlannedError):
        training(folder, ByLoss(), "sampled").insert_after(GradientMachine, Failing("on_batch", "in", step)).run(
            passes=2
        )
    assert result(training(folder, ByLoss(), "sampled", seed=1), folder, passes=2) == uncut


def test_the_state_goes_through_json():
    sampler = TaskSampler(mixed(), ByLoss())
    Runner(sampler, Costs({"a": 1.0, "b": 2.0, "c": 3.0})).run(steps=30)
    saved = sampler.state_dict()
    other = TaskSampler(mixed(), ByLoss())
    other.load_state_dict(json.loads(json.dumps(saved)))
    assert other.state_dict() == saved
    assert other.log_values() == sampler.log_values()


def test_the_state_of_other_tasks_is_refused():
    sampler = TaskSampler({"a": A, "b": A})
    Runner(sampler).run(steps=1)
    with pytest.raises(CheckpointError, match="was saved with the tasks a, b; here it has a, c"):
        TaskSampler({"a": A, "c": A}).load_state_dict(sampler.state_dict())


class Passes(RunnerItem):
    """How many batches each pass had."""

    def __init__(self):
        self.counts = []

    def on_pass(self, state):
        step = state.step
        yield
        self.counts.append(state.step - step)


def going_on(folder, ratio, passes):
    """The batches of each pass of a run that goes on, whether its tasks are the same or not."""
    tasks = {"a": TaskData(data(6)), "b": TaskData(data(4), ratio)}
    saver, counted = Saver(folder, resume="force"), Passes()
    Runner(saver, counted, TaskSampler(tasks, finished="stop")).run(passes=passes)
    return counted.counts


def test_a_run_that_goes_on_with_other_tasks_makes_up_for_no_pass_that_they_had_no_part_in(tmp_path):
    assert going_on(tmp_path, 0.5, passes=5) == [9] * 5
    assert going_on(tmp_path, 0.75, passes=7) == [10, 11], "4 and 5 of b, which PALM's rule adds up to 9"
    assert going_on(tmp_path, 0.75, passes=9) == [10, 11], "the pass that it began with is saved"


def test_a_state_that_does_not_know_its_first_pass_began_with_the_first():
    sampler = TaskSampler({"a": TaskData(data(6))})
    Runner(sampler).run(passes=2)
    saved = sampler.state_dict()
    assert saved.pop("first_pass") == 0
    other = TaskSampler({"a": TaskData(data(6))})
    other.load_state_dict(saved)
    put = Observer(initialize=lambda state: setattr(state, "pass_id", 2))
    assert names(drawn(other, put, passes=3)) == "a" * 6


# -- a run within a run ------------------------------------------------------------------------------------------------


class Within(RunnerItem):
    """After batch number ``at`` it makes a run of its own of the sampler's."""

    def __init__(self, at, *items, error=None):
        self.at, self.runner, self.error, self.seen = at, Runner(*items), error, []

    def on_batch(self, state):
        yield
        if state.step == self.at:
            try:
                self.runner.run(passes=1, parent=state)
            except PlannedError:
                assert self.error


@pytest.mark.parametrize("strategy", [MixRatio, RoundRobin, lambda: ByLoss(lag=3)])
@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("fails", [False, True])
def test_a_run_within_the_run_has_a_place_of_its_own(strategy, prefetch, fails):
    def sampler():
        tasks = {name: TaskData(data(9, shuffle=True, prefetch=prefetch)) for name in "ab"}
        return TaskSampler(tasks, strategy(), seed=4)

    def losses():
        return Observer(on_batch_end=lambda state: setattr(state, "loss", (1 + state.step % 5) / state.step))

    alone = sampler()
    expected = drawn(alone, losses(), passes=2)
    shared, inside = sampler(), []
    note = Observer(on_batch_begin=lambda state: inside.append((state.task, state.batch)))
    failing = [Failing("on_batch", "out", 4)] if fails else []
    within = Within(7, shared, *failing, losses(), note, error=fails)
    assert drawn(shared, within, losses(), passes=2) == expected
    assert shared.state_dict() == alone.state_dict()
    assert shared.log_values() == alone.log_values()
    assert inside == expected[: len(inside)]
    assert len(inside) == 5 if fails else min(names(inside).count(task) for task in "ab") == 9
    assert threads() == []


def test_after_a_run_with_one_within_it_the_sampler_begins_anew():
    sampler = TaskSampler({"a": TaskData(data(5)), "b": TaskData(data(3))}, RoundRobin())
    first = drawn(sampler, Within(2, sampler), steps=3)
    assert drawn(sampler, steps=4)[:3] == first
    assert sampler.log_values()["examples"] == 4


# -- in company --------------------------------------------------------------------------------------------------------


def test_a_tester_and_a_best_checkpoint_a_task(tmp_path):
    """Composition alone: each task has its test onion, its figures, its best checkpoint."""

    class Mse:
        def reset(self):
            self.errors = []

        def update(self, outputs, batch):
            self.errors.append(float(((outputs.numpy() - batch["y"]) ** 2).mean()))

        def result(self):
            return {"mse": sum(self.errors) / len(self.errors)}

    def tester(name):
        naming = Observer(on_batch_begin=lambda state: setattr(state, "batch", {**state.batch, "task": name}))
        onion = Runner(DataProvider(toy_examples(8, seed=ord(name)), 4), Evaluator(Mse()), naming, Forward(network))
        return Tester(onion, every=3, name=name)

    network = TwoHeads(0)
    optimizer = paddle.optimizer.Adam(0.05, parameters=network.parameters())
    tasks = {name: TaskData(DataProvider(toy_examples(12, seed=ord(name)), 4)) for name in "ab"}
    state = Runner(
        Saver(tmp_path / "a", every=100, monitor="a.mse", mode="min"),
        Progress(quiet=True),
        tester("a"),
        tester("b"),
        TaskSampler(tasks, RoundRobin()),
        ParameterUpdater(optimizer),
        GradientMachine(network),
    ).run(passes=5)
    assert {"a.mse", "b.mse"} < state.metrics.keys()
    best = json.loads((tmp_path / "a" / f"step-{state.step:08d}" / "state.json").read_text())["run"]["best_step"]
    assert (tmp_path / "a" / f"step-{best:08d}").is_dir()


def test_it_stands_in_an_inner_run_too():
    """A test over several tasks, run twice, begins each time with the first batch."""
    seen = []
    inner = Runner(
        TaskSampler({"a": TaskData(data(2)), "b": TaskData(data(2))}, RoundRobin()),
        Observer(on_batch_begin=lambda state: seen.append((state.task, state.batch, state.parent.task))),
    )
    Runner(TaskSampler({"z": TaskData(data(2))}), Tester(inner, every=1)).run(passes=1)
    once = [("a", [0], "z"), ("b", [0], "z"), ("a", [1], "z"), ("b", [1], "z")]
    assert seen == once * 2


def test_without_a_sampler_there_is_no_task():
    assert State().task is None


# -- weights by hand ---------------------------------------------------------------------------------------------------


def sampler_of_two():
    return TaskSampler({"a": TaskData(data(200)), "b": TaskData(data(4), target=False)}, Weights({"a": 1.0, "b": 1.0}))


def test_a_weight_that_is_set_takes_the_place_of_the_strategys():
    sampler = sampler_of_two()
    heavier = Observer(on_batch_end=lambda state: sampler.set_weight("b", 1e-3) if state.step == 40 else None)
    seen = names(drawn(sampler, heavier, steps=100))
    assert 10 < seen[:40].count("b") < 30
    assert seen[40:].count("b") <= 1


def test_a_resumed_run_has_it_too(tmp_path):
    def run(steps, act=None):
        sampler = sampler_of_two()
        seen = []
        note = Observer(on_batch_begin=lambda state: seen.append(state.task))
        change = Observer(on_batch_end=lambda state: act(sampler, state) if act else None)
        Runner(Saver(tmp_path), sampler, change, note).run(steps=steps)
        return "".join(seen)

    run(10, lambda sampler, state: sampler.set_weight("b", 1e-3) if state.step == 5 else None)
    assert run(100).count("b") <= 1


def test_the_settings_tell_the_weights_of_the_latest_choice():
    sampler = sampler_of_two()
    drawn(sampler, steps=2)
    settings_there = sampler.adjustable()
    assert {name: setting.get() for name, setting in settings_there.items()} == {"weight.a": 1.0, "weight.b": 1.0}
    settings_there["weight.b"].set(0.5)
    assert sampler.adjustable()["weight.b"].get() == 0.5


def test_a_weight_of_no_task_or_out_of_range_is_refused():
    with pytest.raises(OnionError, match="has no task 'c'; it has a, b"):
        sampler_of_two().set_weight("c", 1.0)
    with pytest.raises(OnionError, match=r"the weight of 'b' must be a number from 0\.001 to 1000, got 0"):
        sampler_of_two().set_weight("b", 0)
