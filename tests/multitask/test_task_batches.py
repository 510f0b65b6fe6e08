"""Draws: the batches of a pass over several tasks, one by one."""

from operator import length_hint

import pytest

from onion import DataProvider, HookError, State, TaskData
from onion.data.loader import InfiniteLoader
from onion.multitask.strategies import ByStep
from onion.multitask.strategies.weighted_choice import WeightedChoice
from onion.multitask.task_batches import TaskBatches


def data(batches):
    return DataProvider(list(range(batches)), 1, prefetch=0, collate=list)


def pass_of(tasks, word, planned, last=100, stop=False):
    """A pass in which the tasks have their turns as the letters of a word come."""
    choice = WeightedChoice(ByStep(lambda step: word[step % len(word)]))
    choice.begin({name: task.facts for name, task in tasks.items()}, seed=0)
    feeds = {name: InfiniteLoader(task.provider.loader) for name, task in tasks.items()}
    return TaskBatches("sampler", State(), tasks, feeds, choice, planned, last, stop)


def drawn(draws):
    return "".join(draws.state.task for _ in draws)


def test_the_state_says_of_which_task_a_batch_is():
    draws = pass_of({"a": TaskData(data(3)), "b": TaskData(data(2))}, "aab", {"a": 4, "b": 2})
    assert [(draws.state.task, batch) for batch in draws] == [
        ("a", [0]),
        ("a", [1]),
        ("b", [0]),
        ("a", [2]),
        ("a", [0]),
        ("b", [1]),
    ]


def test_a_batch_that_is_a_dict_gets_the_name_and_the_datas_own_is_left_as_it_was():
    ready = {"x": 1}
    task = TaskData(DataProvider([0], 1, prefetch=0, collate=lambda examples: ready))
    assert list(pass_of({"a": task}, "a", {"a": 1})) == [{"x": 1, "task": "a"}]
    assert ready == {"x": 1}


def test_the_hint_of_what_is_left_goes_by_the_plan():
    tasks = {"a": TaskData(data(4)), "x": TaskData(data(4), target=False)}
    draws = pass_of(tasks, "axaaxx", {"a": 4, "x": 2})
    assert [length_hint(draws, -1) for _ in draws] == [5, 4, 3, 2, 1, 1, 0]
    assert length_hint(draws, -1) == 0


def test_what_was_drawn_before_counts():
    tasks = {"a": TaskData(data(4)), "b": TaskData(data(4))}
    draws = pass_of(tasks, "ab", {"a": 3, "b": 2})
    next(draws.feeds["a"])
    next(draws.feeds["b"])
    assert drawn(draws) == "aba"


def test_a_target_that_has_its_batches_is_drawn_on():
    tasks = {"a": TaskData(data(2)), "b": TaskData(data(2))}
    assert drawn(pass_of(tasks, "aaaab", {"a": 2, "b": 1})) == "aaaab"


def test_a_target_that_has_its_batches_may_stop_and_an_auxiliary_task_does_not():
    tasks = {"a": TaskData(data(2)), "b": TaskData(data(2)), "x": TaskData(data(2), target=False)}
    turns = ["a", "a", {"a": 1.0, "x": 1.0}, {"a": 1.0, "x": 1.0}, {"a": 1.0, "b": 1.0}]
    assert drawn(pass_of(tasks, turns, {"a": 2, "b": 1, "x": 1}, stop=True)) == "aaxxb"


def test_where_no_task_that_may_be_drawn_has_a_weight_the_step_is_told():
    tasks = {"a": TaskData(data(2)), "b": TaskData(data(2))}
    draws = pass_of(tasks, "a", {"a": 2, "b": 2}, stop=True)
    said = r"^sampler: at step 2 ByStep gave a weight to none of the tasks that may be drawn \(b\)\.$"
    with pytest.raises(HookError, match=said):
        drawn(draws)


def test_a_pass_without_an_end_is_an_error_that_names_the_target():
    tasks = {"x": TaskData(data(2), target=False), "a": TaskData(data(2)), "b": TaskData(data(2))}
    draws = pass_of(tasks, "axx", {"x": 9, "a": 1, "b": 2}, last=7)
    said = r"^sampler: this pass has drawn 1000 times .* lacks 2 of the target 'b'\. ByStep gives it too little weight"
    with pytest.raises(HookError, match=said):
        drawn(draws)
    assert {name: feed.given for name, feed in draws.feeds.items()} == {"x": 4, "a": 3, "b": 0}


def test_a_choice_whose_batch_did_not_come_is_kept():
    asked, tape = [], {"torn": True}

    def source():
        yield 0
        if tape["torn"]:
            raise OSError("the tape is torn")
        yield 1

    tasks = {"a": TaskData(DataProvider(source, 1, prefetch=0, collate=list), target=False), "b": TaskData(data(2))}
    draws = pass_of(tasks, "ab", {"a": 2, "b": 2})
    turn = draws.choice.strategy.function
    draws.choice.strategy.function = lambda step: asked.append(step) or turn(step)
    assert [next(draws), next(draws)] == [[0], [0]]
    with pytest.raises(OSError, match="torn"):
        next(draws)
    assert (draws.choice.chosen, draws.state.task, asked) == ("a", "b", [0, 1, 2])
    assert draws.place() == "sampler, the task 'a', pass 0, batch 1 (both from 0)"
    tape["torn"] = False
    draws.feeds["a"].close()
    assert drawn(draws) == "ab"
    assert asked == [0, 1, 2, 3]
    assert draws.place() == "sampler"
