"""Draws: the batches of a pass over several tasks, one by one."""

from operator import length_hint

import pytest

from onion import DataProvider, HookError, State, TaskData
from onion.data.infinite_loader import InfiniteLoader
from onion.multitask.choice import WeightedChoice
from onion.multitask.strategies import ByStep
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


def test_a_batch_that_is_a_dict_gets_the_name_and_the_datas_own_is_left_as_it_was():
    ready = {"x": 1}
    task = TaskData(DataProvider([0], 1, prefetch=0, collate=lambda examples: ready))
    assert list(pass_of({"a": task}, "a", {"a": 1})) == [{"x": 1, "task": "a"}]
    assert ready == {"x": 1}


def test_the_hint_of_what_is_left_goes_by_the_plan_and_what_was_drawn_before():
    tasks = {"a": TaskData(data(4)), "x": TaskData(data(4), target=False)}
    draws = pass_of(tasks, "axaaxx", {"a": 4, "x": 2})
    assert [length_hint(draws, -1) for _ in draws] == [5, 4, 3, 2, 1, 1, 0]
    assert length_hint(draws, -1) == 0
    tasks = {"a": TaskData(data(4)), "b": TaskData(data(4))}
    draws = pass_of(tasks, "ab", {"a": 3, "b": 2})
    next(draws.feeds["a"])
    next(draws.feeds["b"])
    assert drawn(draws) == "aba"


def test_where_no_task_that_may_be_drawn_has_a_weight_the_step_is_told():
    tasks = {"a": TaskData(data(2)), "b": TaskData(data(2))}
    draws = pass_of(tasks, "a", {"a": 2, "b": 2}, stop=True)
    said = r"^sampler: at step 2 ByStep gave a weight to none of the tasks that may be drawn \(b\)\.$"
    with pytest.raises(HookError, match=said):
        drawn(draws)


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
