import json

import pytest

from onion.cli import arguments
from onion.errors import CheckpointError, DataError
from onion.tasks.classification import Classification
from onion.tasks.registry import OLD_NAMES, TASKS, current_name, get_task, recorded_task, register

SETTINGS = {
    # settings that decide about the features, and others
    "regression": ({"max_length": 20}, {"dropout": 0.2}),
    "matching": ({"learning": "pairwise", "labels": ["0", "1"]}, {"margin": 0.1}),
    "multilabel": ({"labels": ["x", "y"], "separator": 1, "pairs": False}, {"threshold": 0.3}),
    "masked-lm": ({"max_length": 9}, {"whole_words": True, "masked_share": 0.3, "guesses": 9}),
    "token-classification": ({"stride": 3}, {"decoder": "crf", "dropout": 0.5}),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_task_is_what_its_record_says_and_some_settings_leave_the_features_alone(name):
    of_features, others = SETTINGS[name]
    task = get_task(name, of_features | others)
    assert recorded_task(json.loads(json.dumps(task.record())), "x") == task
    assert (
        task.features_record() == get_task(name, of_features).features_record() != get_task(name, {}).features_record()
    )


class Own(Classification):
    name = "classify"


def test_the_command_line_names_all_tasks():
    assert set(arguments.TASKS) == TASKS.keys()


@pytest.mark.parametrize("old", OLD_NAMES)
def test_an_earlier_name_is_an_alias_of_a_task_and_never_written(old):
    task = get_task(old, {})
    assert type(task) is TASKS[OLD_NAMES[old]]
    assert task.record()["task"] == current_name(old) == OLD_NAMES[old]
    assert recorded_task({**task.record(), "task": old}, "task.json") == task


def test_a_task_of_ones_own_takes_no_earlier_name():
    with pytest.raises(DataError, match="the name 'classify' belongs to another task; rename yours"):
        register(Own())


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (
            {"task": "rhyme"},
            "unknown task 'rhyme'; register a task of your own with onion.tasks.registry.register",
        ),
        (
            {"task": "classification", "colour": 1},
            "is damaged, or of another version of onion .*unknown setting 'colour'",
        ),
        ({"max_length": 8}, "is damaged"),
        ({"task": 5}, "is damaged"),
        (["task"], "is damaged"),
        (None, "is damaged"),
    ],
)
def test_records_that_do_not_do(record, told):
    with pytest.raises(CheckpointError, match=f"^task.json:? {told}"):
        recorded_task(record, "task.json")
