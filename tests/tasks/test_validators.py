import pytest

from onion.errors import DataError
from onion.tasks.registry import get_task
from onion.tasks.validators import as_float, as_name

NUMBERS = [
    ("classification", "label_smoothing"),
    ("classification", "dropout"),
    ("regression", "dropout"),
    ("matching", "margin"),
    ("matching", "dropout"),
    ("multilabel", "threshold"),
    ("multilabel", "dropout"),
    ("masked-lm", "masked_share"),
    ("token-classification", "dropout"),
    ("question-answering", "null_threshold"),
]


@pytest.mark.parametrize(("task", "name"), NUMBERS)
def test_yaml_takes_some_numbers_for_texts(task, name):
    assert getattr(get_task(task, {name: "1e-1"}), name) == 0.1


def test_a_setting_out_of_its_range_is_refused_by_its_name():
    with pytest.raises(DataError, match=r"regression: dropout must be a number >= 0 and < 1, got 1\.0"):
        get_task("regress", {"dropout": 1.0})


@pytest.mark.parametrize("value", [None, True, "fast", [1], pytest.param(10**400, id="long")])
def test_what_is_no_number_stays_as_it_is(value):
    assert as_float(value) is value


@pytest.mark.parametrize(("value", "name"), [(0, "0"), (-1, "-1"), ("1", "1"), (True, True), (1.0, 1.0), (None, None)])
def test_whole_numbers_are_names(value, name):
    assert as_name(value) == name
    assert type(as_name(value)) is type(name)
