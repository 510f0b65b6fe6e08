import pytest

from onion.errors import DataError
from onion.tasks.names import PRETRAINING_TASK_NAMES as NAMES
from onion.tasks.pretraining.registry import PRETRAINING_TASKS, get_pretraining_task


def test_the_tasks_have_the_ids_of_ernie_and_two_more():
    assert tuple(PRETRAINING_TASKS) == NAMES
    assert {name: kind.task_id for name, kind in PRETRAINING_TASKS.items()} == {
        name: number for number, name in enumerate(NAMES)
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_task_is_made_of_its_settings(name):
    needed = {"questions": "questions.json"} if name == "ir-relevance" else {}
    task = get_pretraining_task(name, {"max_length": 64, **needed})
    assert type(task) is PRETRAINING_TASKS[name]
    assert (task.name, task.max_length) == (name, 64)
    assert task.masks == (not task.each_token)
    assert len(task.classes) != 1


def test_what_is_unknown_or_wrong_is_refused():
    with pytest.raises(DataError, match="unknown pretraining task 'mlm'; the tasks are knowledge-masking, capital"):
        get_pretraining_task("mlm", {})
    with pytest.raises(DataError, match="unknown setting 'length'; the pretraining task next-sentence has max_length"):
        get_pretraining_task("next-sentence", {"length": 3})
    with pytest.raises(DataError, match="next-sentence: max_length must be an integer >= 1, got 0"):
        get_pretraining_task("next-sentence", {"max_length": 0})
    with pytest.raises(DataError, match="capitalisation: sentence_starts must be true or false"):
        get_pretraining_task("capitalisation", {"sentence_starts": "no"})
    with pytest.raises(DataError, match="ir-relevance needs the setting questions"):
        get_pretraining_task("ir-relevance", {})
