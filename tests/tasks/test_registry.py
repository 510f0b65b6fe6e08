import json

import pytest

from onion.errors import CheckpointError, DataError
from onion.tasks.classification import Classification
from onion.tasks.multilabel import MultiLabel
from onion.tasks.names import TASK_NAMES
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
    features = task.features_record()
    assert features == get_task(name, of_features).features_record() != get_task(name, {}).features_record()


NO_NAME = "must be a string or an integer, got {}; put values that YAML or JSON reads as something else"
REFUSED = {
    "classification": [
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"label_smoothing": "much"}, "label_smoothing must be a number.*, got 'much'"),
        ({"dropout": -0.5}, "dropout"),
        ({"class_weights": {True: 2}}, "class_weights: the label True is not a string or an integer; .* in quotes"),
        ({"class_weights": {1.5: 2}}, "class_weights: the label 1.5 is not a string or an integer"),
        ({"class_weights": {1: 2, "1": 3}}, "class_weights: the label '1' is given twice; remove one"),
        ({"class_weights": {"a": -1}}, "class_weights: the weight of 'a', -1.0, is not a number from 0"),
        ({"class_weights": {"a": 1e39}}, r"class_weights: the weight of 'a', 1e\+39, is not a number from 0 to 1e\+06"),
        ({"class_weights": {"a": True}}, "class_weights: the weight of 'a', True, is not a number from 0"),
        (
            {"class_weights": [1, 2]},
            r"class_weights: \[1, 2\] is not a mapping of labels to numbers >= 0, nor 'balanced'; on the command",
        ),
        ({"labels": ["a", True]}, "labels: True is not a string or an integer; .* in quotes"),
        ({"labels": "ab"}, "labels: 'ab' is not a list of strings"),
        ({"labels": [1, "1"]}, "labels: '1' is given twice"),
        ({"colour": 1}, "unknown setting 'colour'; the task classification has max_length, pairs, labels, class_w"),
    ],
    "matching": [
        ({"labels": ["0", "1", "2"]}, "there must be two labels, one for a match"),
        ({"learning": "listwise"}, "learning must be one of pointwise, pairwise, got 'listwise'"),
        ({"fits": True}, f"fits {NO_NAME.format(True)}"),
        ({"fits": 1.0}, "fits must be a string.*, got 1.0"),
        ({"margin": 0}, "margin must be a number > 0 and <= 1, got 0.0"),
        ({"margin": "wide"}, "margin must be a number > 0.*, got 'wide'"),
    ],
    "multilabel": [
        ({"separator": ""}, "separator must be a string.*, got ''"),
        ({"separator": False}, f"separator {NO_NAME.format(False)}"),
        ({"threshold": 1.0}, "threshold must be a number >= 0 and < 1, got 1.0"),
        ({"threshold": "high"}, "threshold must be a number >= 0.*, got 'high'"),
    ],
    "masked-lm": [
        ({"masked_share": 0}, "masked_share must be a number > 0 and <= 1, got 0.0"),
        ({"masked_share": 1.5}, "masked_share must be a number > 0 and <= 1, got 1.5"),
        ({"guesses": 0}, "guesses must be an integer >= 1, got 0"),
        ({"guesses": 1.5}, "guesses must be an integer >= 1, got 1.5"),
        ({"whole_words": "yes"}, "whole_words must be true or false, got 'yes'"),
    ],
    "token-classification": [
        ({"decoder": "hmm"}, "decoder must be one of softmax, crf, got 'hmm'"),
        ({"stride": 0}, "stride must be an integer >= 1, got 0"),
        ({"dropout": 1.0}, "dropout must be a number >= 0 and < 1, got 1.0"),
    ],
    "question-answering": [
        ({"max_length": 68}, "max_length 68 leaves no room for a context .* max_query_length"),
        ({"doc_stride": 0}, "doc_stride must be an integer >= 1, got 0"),
        ({"max_length": 60, "max_query_length": 16, "doc_stride": 40}, "doc_stride 40 .* windows would not overlap"),
        ({"n_best": 1.5}, "n_best must be an integer >= 1, got 1.5"),
        ({"language": "de"}, "language must be one of en, zh, got 'de'"),
        ({"with_negative": "no"}, "with_negative must be true or false, got 'no'"),
        ({"null_threshold": "x"}, "null_threshold must be a number, got 'x'"),
    ],
}


@pytest.mark.parametrize(("name", "settings", "told"), [(name, *case) for name in REFUSED for case in REFUSED[name]])
def test_settings_that_do_not_do(name, settings, told):
    with pytest.raises(DataError, match=told):
        get_task(name, settings)


def test_a_name_may_be_a_whole_number():
    assert MultiLabel(separator=1) == MultiLabel(separator="1")


class Own(Classification):
    name = "classify"


def test_the_command_line_names_all_tasks():
    assert set(TASK_NAMES) == TASKS.keys()


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
        ({"task": "rhyme"}, "unknown task 'rhyme'; register a task of your own with onion.tasks.registry.register"),
        ({"task": "classification", "colour": 1}, "is damaged, or of another version of onion .*setting 'colour'"),
        ({"max_length": 8}, "is damaged"),
        ({"task": 5}, "is damaged"),
        (["task"], "is damaged"),
        (None, "is damaged"),
    ],
)
def test_records_that_do_not_do(record, told):
    with pytest.raises(CheckpointError, match=f"^task.json:? {told}"):
        recorded_task(record, "task.json")
