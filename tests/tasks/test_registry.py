import json

import pytest

from onion.errors import CheckpointError
from onion.tasks.registry import get_task, recorded_task

SETTINGS = {
    # settings that decide about the features, and others
    "regress": ({"max_length": 20}, {"dropout": 0.2}),
    "match": ({"learning": "pairwise", "labels": ["0", "1"]}, {"margin": 0.1}),
    "multilabel": ({"labels": ["x", "y"], "separator": 1, "pairs": False}, {"threshold": 0.3}),
    "mask": ({"max_length": 9}, {"whole_words": True, "masked_share": 0.3, "guesses": 9}),
    "tag": ({"stride": 3}, {"decoder": "crf", "dropout": 0.5}),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_task_is_what_its_record_says_and_some_settings_leave_the_features_alone(name):
    of_features, others = SETTINGS[name]
    task = get_task(name, of_features | others)
    assert recorded_task(json.loads(json.dumps(task.record())), "x") == task
    assert (
        task.features_record() == get_task(name, of_features).features_record() != get_task(name, {}).features_record()
    )


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (
            {"task": "rhyme"},
            "the task 'rhyme' is not known here; if it is one of your own, .* onion.tasks.registry.register",
        ),
        (
            {"task": "classify", "colour": 1},
            "is damaged, or of another version of onion .*there is no setting 'colour'",
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
