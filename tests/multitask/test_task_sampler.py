"""TaskSampler: whose batch comes when, where a pass ends, what is told, refused and taken up again."""

import itertools
import json
import re
import threading
from contextlib import suppress
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
    Observer,
    OnionError,
    ParameterUpdater,
    Repeat,
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
from tests.onions.parts import SquaredError


def data(batches, **options):
    """A provider of so many batches a pass, [0], [1], ..."""
    return DataProvider(list(range(batches)), 1, **{"prefetch": 0, "collate": list, **options})


def task(batches, ratio=1.0, target=True):
    return TaskData(data(batches), ratio, target)


def two(a, b, strategy=None, **settings):
    """A sampler of the tasks a and b with so many batches a pass, in turns."""
    return TaskSampler({"a": task(a), "b": task(b)}, strategy or RoundRobin(), **settings)


def drawn(sampler, *items, **limits):
    """The (task, batch) of every batch of a run."""
    seen = []
    note = Observer(on_batch_begin=lambda state: seen.append((state.task, state.batch)))
    Runner(sampler, *items, note).run(**limits)
    return seen


def counts(sampler, passes):
    """How many batches of each task had been drawn at the end of each pass."""
    found, seen = [], []
    note = Observer(
        on_batch_begin=lambda state: seen.append(state.task),
        on_pass_end=lambda state: found.append({name: seen.count(name) for name in sampler.tasks}),
    )
    Runner(sampler, note).run(passes=passes)
    return found


def names(seen):
    return "".join(task for task, _ in seen)


def turns(word):
    return ByStep(lambda step: word[step % len(word)])


# -- whose batch -------------------------------------------------------------------------------------------------------


def test_every_batch_is_of_one_task_which_outer_items_see_on_both_ways():
    assert drawn(two(3, 3), passes=1) == [("a", [0]), ("b", [0]), ("a", [1]), ("b", [1]), ("a", [2]), ("b", [2])]
    seen = []
    hooks = dict.fromkeys(["on_batch_begin", "on_batch_end", "on_pass_end"], lambda state: seen.append(state.task))
    Runner(Observer(**hooks), two(1, 1)).run(passes=1)
    assert seen == ["a", "a", "b", "b", None]


def test_each_task_goes_through_passes_of_its_own_in_an_order_of_its_own():
    providers = {"a": data(4, shuffle=True, seed=1), "b": data(3, shuffle=True, seed=2, prefetch=2)}
    sampler = TaskSampler({name: TaskData(provider) for name, provider in providers.items()}, RoundRobin())
    seen = drawn(sampler, passes=3)
    for name, provider in providers.items():
        expected = [batch for number in range(5) for batch in provider.loader.batches(number)]
        assert [batch for task, batch in seen if task == name] == expected[:12]


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

    assert Runner(two(3, 3), Pairs()).run(passes=1).step == 3
    assert "".join(seen) == "ababab"


def test_the_choice_depends_on_the_seed_alone_and_draws_from_no_global_generator():
    def order(seed):
        return names(drawn(two(40, 40, MixRatio(), seed=seed), passes=1))

    before = np.random.get_state(legacy=True)[1].tolist()
    first = order(1)
    assert np.random.get_state(legacy=True)[1].tolist() == before
    np.random.seed(np.random.randint(1000))
    assert order(1) == first != order(2)


def test_a_second_run_starts_again_after_one_within_the_first_too():
    sampler = two(5, 3)
    assert drawn(sampler, steps=3) == drawn(sampler, steps=3)
    sampler = two(5, 3)
    first = drawn(sampler, Within(2, sampler), steps=3)
    assert drawn(sampler, steps=4)[:3] == first
    assert sampler.log_values()["examples"] == 4


# -- where a pass ends -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tasks", "reference", "expected"),
    [
        ({"x": task(9, target=False), "a": task(4), "b": task(50, 0.5)}, None, [4, 8, 12]),
        ({"a": task(4, 0.5), "b": task(10, target=False)}, "b", [5, 10, 15]),
    ],
    ids=["the first target", "the one that is named"],
)
def test_a_pass_is_one_over_the_reference_task(tasks, reference, expected):
    found = counts(TaskSampler(tasks, reference=reference, finished="stop"), 3)
    assert [each["a"] for each in found] == expected


@pytest.mark.parametrize(("ratio", "planned"), [(0.35, [3, 7, 10, 14]), (1.0, [10, 20, 30, 40]), (1.25, [12, 25, 37])])
def test_batches_are_planned_cumulatively_as_palm_plans_them(ratio, planned):
    sampler = TaskSampler({"a": task(10), "b": task(7, ratio)}, finished="stop")
    assert [each["b"] for each in counts(sampler, len(planned))] == planned


def test_a_pass_waits_for_every_target_and_a_finished_one_is_drawn_on_or_stops():
    assert names(drawn(two(2, 2, turns("aaaab")), passes=1)) == "aaaabaaaab"
    strategy = ByStep(lambda step: {"a": 1.0} if step < 2 else {"a": 1e9, "b": 1e-9})
    assert names(drawn(two(2, 2, strategy, finished="stop"), passes=1)) == "aabb"
    sampler = two(2, 2, Weights({"a": 1, "b": 1e-300}), finished="stop")
    assert names(drawn(sampler, passes=1)) == "aabb"


def test_an_auxiliary_task_never_delays_a_pass_and_is_drawn_on_where_targets_stop():
    tasks = {"a": task(5), "x": task(100, 1e6, target=False)}
    assert names(drawn(TaskSampler(tasks, Weights({"a": 1, "x": 1e-12})), passes=2)) == "a" * 10
    tasks = {"a": task(1), "b": task(2), "x": task(1, 0.1, target=False)}
    strategy = ByStep(lambda step: {"a": 1.0} if step < 1 else {"a": 1.0, "x": 1.0} if step < 6 else {"b": 1.0})
    assert names(drawn(TaskSampler(tasks, strategy, finished="stop"), passes=1)) == "axxxxxb"


def test_what_a_pass_lacks_that_an_item_ended_the_next_one_makes_up_for():
    ends = Observer(on_batch_end=lambda state: state.stop_pass("enough") if state.step == 1 else None)
    assert names(drawn(TaskSampler({"a": task(3)}), ends, passes=2)) == "a" * 6


class SkipB(RunnerItem):
    def on_batch(self, state):
        if state.task != "b":
            yield


def test_a_batch_that_an_item_skips_or_repeats_was_drawn_once():
    sampler, seen = two(3, 3), []
    inside = Observer(on_batch_begin=lambda state: seen.append(state.task))
    state = Runner(sampler, SkipB(), inside).run(passes=1)
    assert ("".join(seen), state.step) == ("aaa", 3)
    assert state.metrics["share.b"] == 0.5
    once, again = (two(20, 20, MixRatio(), seed=3) for _ in range(2))
    expected, seen = drawn(once, passes=2), drawn(again, Repeat(2), passes=2)
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
    made = {**{str(i): task(*each) for i, each in enumerate(tasks)}, "r": task(10)}
    sampler = TaskSampler(made, strategy(), seed=seed, reference="r", finished=finished)
    hints, last = [], []
    note = Observer(
        on_batch_begin=lambda state: (hints.append(length_hint(state.batches, -1)), last.append(state.task))
    )
    state = Runner(sampler, note)
    passes = 3
    found = counts(sampler, passes)
    state.run(passes=passes)
    for number, got in enumerate(found, start=1):
        for name, each in made.items():
            planned = int(number * each.mix_ratio * 10)
            if each.target:
                assert got[name] >= planned
                assert finished == "sampled" or got[name] == planned
    assert made[last[-1]].target
    assert found[-1][last[-1]] == int(passes * made[last[-1]].mix_ratio * 10)
    assert hints.count(0) == passes, "the hint is 0 after the last batch of a pass, and only there"


# -- shares ------------------------------------------------------------------------------------------------------------

MIXED = {"a": (100, 1.0, True), "b": (30, 0.5, True), "c": (7, 2.0, False)}


def mixed():
    return {name: task(size, ratio, target) for name, (size, ratio, target) in MIXED.items()}


SHARES = [
    (MixRatio(), {"a": 1, "b": 0.5, "c": 2}),
    (BySize(), {"a": 100, "b": 30, "c": 7}),
    (Temperature(2), {"a": 10, "b": 30**0.5, "c": 7**0.5}),
    (Uniform(), {"a": 1, "b": 1, "c": 1}),
    (Weights({"a": 1, "b": 8, "c": 1}), {"a": 1, "b": 8, "c": 1}),
    (ByStep(lambda step: {"a": 1, "b": 2 * (step % 2), "c": 1}), {"a": 3, "b": 2, "c": 3}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "weights"), SHARES)
def test_over_100000_draws_the_shares_are_within_1_percent_of_the_planned_ones(strategy, weights):
    sampler = TaskSampler(mixed(), strategy, seed=5)
    Runner(sampler).run(steps=100_000)
    told = sampler.log_values()
    for name, weight in weights.items():
        planned = weight / sum(weights.values())
        assert told[f"planned_share.{name}"] == pytest.approx(planned, abs=1e-9)
        assert abs(told[f"share.{name}"] - planned) < 0.01


def test_round_robin_is_exact():
    sampler = TaskSampler(mixed(), RoundRobin())
    Runner(sampler).run(steps=999)
    told = sampler.log_values()
    for name in MIXED:
        assert told[f"share.{name}"] == told[f"planned_share.{name}"] == pytest.approx(1 / 3, abs=1e-15)


def test_shares_are_reported_at_the_end_of_a_pass_that_was_not_cut_and_examples_counted():
    sampler = two(4, 4)
    assert Runner(sampler).run(steps=3).metrics == {}
    state = Runner(sampler).run(passes=1)
    assert state.metrics == dict.fromkeys(["share.a", "share.b", "planned_share.a", "planned_share.b"], 0.5)
    assert set(state.reported.values()) == {8}
    sampler = TaskSampler({"a": task(4), "b": TaskData(DataProvider(list(range(9)), 5))}, RoundRobin())
    assert sampler.log_values() == {"examples": 0}
    Runner(sampler).run(steps=4)
    assert sampler.log_values()["examples"] == 1 + 5 + 1 + 4


# -- losses ------------------------------------------------------------------------------------------------------------


class Costs(RunnerItem):
    """Leave losses whose reading is recorded."""

    def __init__(self, values):
        self.values, self.reads = values, []

    def on_batch(self, state):
        value = self.values[state.task]
        state.loss = type("Cost", (), {"__float__": lambda loss: self.reads.append(value) or value})()


def test_the_readings_have_every_tasks_latest_loss_which_is_read_late():
    losses, sampler = Costs({"a": 1.0, "b": 2.0}), two(2, 2)
    Runner(sampler, losses).run(passes=1)
    assert losses.reads == []
    told = sampler.log_values()
    assert (told["loss.a"], told["loss.b"]) == (1.0, 2.0)
    sampler = two(2, 2)
    Runner(sampler, SkipB(), Costs({"a": 1.0})).run(passes=1)
    assert "loss.b" not in sampler.log_values()
    losses = Costs({"a": 1.0})
    Runner(TaskSampler({"a": task(10)}, ByLoss(lag=4)), losses).run(passes=1)
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


def test_no_thread_outlives_a_pass_a_cut_run_or_an_error_in_the_data():
    alive = []

    def look(state):
        alive.append(threads())

    Runner(Observer(on_pass_end=look, on_batch_end=look), threaded()).run(steps=160)
    assert alive.pop(150) == []
    assert all(alive[:100])
    assert threads() == []

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
    def fail():
        raise PlannedError("close")

    sampler = threaded()
    stuck = Observer(on_batch_begin=lambda state: setattr(sampler._feeds["a"], "close", fail))
    with pytest.raises(PlannedError):
        Runner(sampler, stuck).run(steps=5)
    del sampler._feeds["a"].close
    sampler._feeds["a"].close()
    assert threads() == []


# -- what is refused ---------------------------------------------------------------------------------------------------

A = task(4)
STREAM = TaskData(DataProvider(lambda: range(4)))
BAD_RATIOS = [(0, "0"), (-1.0, "-1.0"), (float("nan"), "nan"), (float("inf"), "inf"), (1e300, "1e+300"), ("1", "'1'")]
BAD_RATIOS += [(None, "None"), (True, "True")]
REFUSED = [
    ("there are no tasks", {}, {}),
    *[
        (
            f"the mix_ratio of the task 'b' is {shown}; it must be a number above 0, at most 1e9",
            {"a": A, "b": task(4, ratio)},
            {},
        )
        for ratio, shown in BAD_RATIOS
    ],
    ("the task 1 has a name of type int; use a string, '1'", {1: A}, {}),
    ("strategy is the class Uniform: write Uniform(", {"a": A}, {"strategy": Uniform}),
    ("the strategy is a str; use one of onion", {"a": A}, {"strategy": "uniform"}),
    ("the strategy is a builtin_function_or_method", {"a": A}, {"strategy": len}),
    (
        "ByStep would not finish the target 'a' (batches in a pass: 4) in 1000 times the 8 batches that are planned",
        {"a": A, "b": task(4, target=False)},
        {"strategy": ByStep(lambda step: "b")},
    ),
    ("Weights would not finish the target 'b'", {"a": A, "b": A}, {"strategy": Weights({"a": 1, "b": 1e-300})}),
    ("the task 'b' has no data; give it a Task", {"a": A, "b": TaskData(None)}, {}),
    ("the task 'a' has no data", {"a": data(4)}, {}),
    ("all tasks are auxiliary", {"a": task(4, target=False)}, {}),
    ("reference='z' is not one of the tasks a", {"a": A}, {"reference": "z"}),
    ("the reference task 'a' is a stream, whose pass has no known length", {"a": STREAM}, {}),
    ("the reference task 's' is a stream", {"a": A, "s": STREAM}, {"reference": "s"}),
    (
        "no batch of the target 'b' is planned in a pass: mix_ratio=0.2 of 4 batches of 'a' is below 1; raise it",
        {"a": A, "b": task(4, 0.2)},
        {},
    ),
    (
        "Weights gives the task 'b' the weight 0, so it would never be finished",
        {"a": A, "b": A},
        {"strategy": Weights({"a": 1, "b": 0})},
    ),
    ("the tasks are a.", {"a": A}, {"strategy": Weights({"b": 1})}),
    ("gave the task 'z'", {"a": A}, {"strategy": ByStep(lambda step: "z")}),
    ("finished='ends' is neither 'sampled'", {"a": A}, {"finished": "ends"}),
    ("seed=-1 is below 0", {"a": A}, {"seed": -1}),
    ("seed=1.5 is not an integer", {"a": A}, {"seed": 1.5}),
    ("seed='1' is not an integer", {"a": A}, {"seed": "1"}),
]


@pytest.mark.parametrize(("said", "tasks", "settings"), REFUSED, ids=[said for said, *_ in REFUSED])
def test_what_cannot_be_trained_is_refused_when_the_runner_is_built_with_its_drawing(said, tasks, settings):
    with pytest.raises(CompositionError, match=re.escape(said)) as refused:
        Runner(TaskSampler(tasks, **settings))
    assert "task_sampler  TaskSampler(" in str(refused.value)


@pytest.mark.parametrize("tasks", [[A], None, A])
def test_tasks_come_by_name(tasks):
    with pytest.raises(CompositionError, match=r"TaskSampler: tasks must be a dict, .* not a "):
        TaskSampler(tasks)


@pytest.mark.parametrize("others", [lambda: data(4), lambda: TaskSampler({"b": A}), lambda: Runner(data(4))])
def test_no_other_item_brings_data(others):
    told = "provides data too, and only the inner one would be read; remove one"
    for items in ([TaskSampler({"a": A}), others()], [others(), TaskSampler({"a": A})]):
        with pytest.raises(CompositionError, match=told):
            Runner(*items)


class Never(Strategy):
    """Not to be foreseen."""

    def weights(self, step, names):
        return {"b": 1.0}


def test_a_pass_without_an_end_is_an_error_that_names_the_target():
    seen = []
    note = Observer(on_batch_begin=lambda state: seen.append(state.task))
    said = r"^task_sampler: this pass has drawn 1000 times the batches that .*, and still lacks 2 of the target 'a'\. "
    with pytest.raises(HookError, match=f"{said}Never gives it too little"):
        Runner(TaskSampler({"a": task(2), "b": task(1, 0.5, target=False)}, Never()), note).run(passes=1)
    assert seen == ["b"] * 1000 * 3


def test_the_limit_of_a_pass_is_its_own():
    """What earlier passes drew does not count, nor how little of its plan a pass still lacks."""

    class Late(Strategy):
        def weights(self, step, names):
            return {"b": 1.0} if step % 2000 else {"a": 1.0}

    assert Runner(TaskSampler({"a": task(1), "b": task(1, target=False)}, Late())).run(passes=4).step == 6001
    with pytest.raises(HookError, match="still lacks 1 of the target 'a'"):
        Runner(TaskSampler({"a": task(1), "b": task(1, 0.4, target=False)}, Late())).run(passes=2)


def test_broken_data_says_of_which_task_and_empty_data_are_refused():
    tasks = {"a": A, "b": TaskData(DataProvider(lambda: iter(()), prefetch=0), target=False)}
    with pytest.raises(DataError, match=r"task_sampler, the task 'b', pass 0, batch 0 .*: the data source returned no"):
        Runner(TaskSampler(tasks, RoundRobin())).run(passes=1)
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

    both = {"a": A, "b": A}
    with pytest.raises(CompositionError, match="has the task 'b', for which the network of gradient_machine has no"):
        Runner(TaskSampler(both), GradientMachine(Heads()))
    Runner(TaskSampler({"a": A}), GradientMachine(Heads()))
    Runner(TaskSampler(both), GradientMachine(toy_network()))


# -- resumption; every strategy is resumed in tests/test_resumption.py -------------------------------------------------


def test_the_state_goes_through_json_and_that_of_other_tasks_is_refused():
    sampler = TaskSampler(mixed(), ByLoss())
    Runner(sampler, Costs({"a": 1.0, "b": 2.0, "c": 3.0})).run(steps=30)
    saved = sampler.state_dict()
    other = TaskSampler(mixed(), ByLoss())
    other.load_state_dict(json.loads(json.dumps(saved)))
    assert other.state_dict() == saved
    assert other.log_values() == sampler.log_values()
    sampler = TaskSampler({"a": A, "b": A})
    Runner(sampler).run(steps=1)
    with pytest.raises(CheckpointError, match="was saved with the tasks a, b; here it has a, c"):
        TaskSampler({"a": A, "c": A}).load_state_dict(sampler.state_dict())


def going_on(folder, ratio, passes):
    """The batches of each pass of a run that goes on, whether its tasks are the same or not."""
    steps = []
    note = dict.fromkeys(["initialize", "on_pass_end"], lambda state: steps.append(state.step))
    sampler = TaskSampler({"a": task(6), "b": task(4, ratio)}, finished="stop")
    Runner(Saver(folder, resume="force"), Observer(**note), sampler).run(passes=passes)
    return [after - before for before, after in itertools.pairwise(steps)]


def test_a_run_that_goes_on_with_other_tasks_makes_up_for_no_pass_that_they_had_no_part_in(tmp_path):
    assert going_on(tmp_path, 0.5, passes=5) == [9] * 5
    assert going_on(tmp_path, 0.75, passes=7) == [10, 11], "4 and 5 of b, which PALM's rule adds up to 9"
    assert going_on(tmp_path, 0.75, passes=9) == [10, 11], "the pass that it began with is saved"


def test_a_state_that_does_not_know_its_first_pass_began_with_the_first():
    sampler, other = (TaskSampler({"a": task(6)}) for _ in range(2))
    Runner(sampler).run(passes=2)
    saved = sampler.state_dict()
    assert saved.pop("first_pass") == 0
    other.load_state_dict(saved)
    put = Observer(initialize=lambda state: setattr(state, "pass_id", 2))
    assert names(drawn(other, put, passes=3)) == "a" * 6


class Within(RunnerItem):
    """After batch number ``at``, run the sampler in a run inside the run."""

    def __init__(self, at, *items):
        self.at, self.runner = at, Runner(*items)

    def on_batch(self, state):
        yield
        if state.step == self.at:
            with suppress(PlannedError):
                self.runner.run(passes=1, parent=state)


@pytest.mark.parametrize("strategy", [MixRatio, RoundRobin, lambda: ByLoss(lag=3)])
@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("fails", [False, True])
def test_a_run_within_the_run_has_a_place_of_its_own(strategy, prefetch, fails):
    def sampler():
        tasks = {name: TaskData(data(9, shuffle=True, prefetch=prefetch)) for name in "ab"}
        return TaskSampler(tasks, strategy(), seed=4)

    def losses():
        return Observer(on_batch_end=lambda state: setattr(state, "loss", (1 + state.step % 5) / state.step))

    alone, shared, inside = sampler(), sampler(), []
    expected = drawn(alone, losses(), passes=2)
    note = Observer(on_batch_begin=lambda state: inside.append((state.task, state.batch)))
    failing = [Failing("on_batch", "out", 4)] if fails else []
    assert drawn(shared, Within(7, shared, *failing, losses(), note), losses(), passes=2) == expected
    assert shared.state_dict() == alone.state_dict()
    assert shared.log_values() == alone.log_values()
    assert inside == expected[: len(inside)]
    assert len(inside) == 5 if fails else min(names(inside).count(name) for name in "ab") == 9
    assert threads() == []


def test_a_tester_and_a_best_checkpoint_a_task(tmp_path):
    """Composition alone: each task has its test runner, its metrics, its best checkpoint."""

    def tester(name):
        test = Runner(DataProvider(toy_examples(8, seed=ord(name)), 4), Evaluator(SquaredError()), Forward(network))
        return Tester(test, every=3, name=name)

    network = toy_network()
    tasks = {name: TaskData(DataProvider(toy_examples(12, seed=ord(name)), 4)) for name in "ab"}
    state = Runner(
        Saver(tmp_path, every=100, monitor="a.error", mode="min"),
        *map(tester, "ab"),
        TaskSampler(tasks, RoundRobin()),
        ParameterUpdater(paddle.optimizer.Adam(0.05, parameters=network.parameters())),
        GradientMachine(network),
    ).run(passes=5)
    assert {"a.error", "b.error"} < state.metrics.keys()
    best = json.loads((tmp_path / f"step-{state.step:08d}" / "state.json").read_text())["run"]["best_step"]
    assert (tmp_path / f"step-{best:08d}").is_dir()


def test_it_works_in_an_inner_run_too():
    """A test over several tasks, run twice, begins each time with the first batch."""
    seen = []
    note = Observer(on_batch_begin=lambda state: seen.append((state.task, state.batch, state.parent.task)))
    Runner(TaskSampler({"z": task(2)}), Tester(Runner(two(2, 2), note), every=1)).run(passes=1)
    assert seen == [("a", [0], "z"), ("b", [0], "z"), ("a", [1], "z"), ("b", [1], "z")] * 2
    assert State().task is None


def sampler_of_two():
    return TaskSampler({"a": task(200), "b": task(4, target=False)}, Weights({"a": 1.0, "b": 1.0}))


@pytest.mark.parametrize("resumed", [False, True])
def test_a_weight_that_is_set_replaces_the_strategys_and_a_resumed_run_has_it_too(resumed, tmp_path):
    seen = []

    def run(steps):
        sampler = sampler_of_two()
        note = Observer(on_batch_begin=lambda state: seen.append(state.task))
        heavier = Observer(on_batch_end=lambda state: sampler.set_weight("b", 1e-3) if state.step == 40 else None)
        Runner(Saver(tmp_path), sampler, heavier, note).run(steps=steps)

    if resumed:
        run(45)
    run(100)
    assert 10 < seen[:40].count("b") < 30
    assert (len(seen), seen[40:].count("b") <= 1) == (100, True)


def test_the_settings_are_the_weights_of_the_latest_choice_and_others_are_refused():
    sampler = sampler_of_two()
    drawn(sampler, steps=2)
    weights = sampler.adjustable()
    assert {name: setting.get() for name, setting in weights.items()} == {"weight.a": 1.0, "weight.b": 1.0}
    weights["weight.b"].set(0.5)
    assert sampler.adjustable()["weight.b"].get() == 0.5
    with pytest.raises(OnionError, match="has no task 'c'; it has a, b"):
        sampler_of_two().set_weight("c", 1.0)
    with pytest.raises(OnionError, match=r"the weight of 'b' must be a number from 0\.001 to 1000, got 0"):
        sampler_of_two().set_weight("b", 0)
