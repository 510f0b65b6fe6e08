"""Readings: what items tell of themselves, each name once."""

import pytest

from onion import DataProvider, Runner, RunnerItem, State
from onion.monitoring.log_values import log_values, loss_of
from onion.testing import Batches


class Telling(RunnerItem):
    def __init__(self, **told):
        self.told = told

    def log_values(self):
        return self.told


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([Batches(1), Telling(a=1.0), Runner(Telling(b=2.0))], {"a": 1.0, "b": 2.0}),
        ([Telling(a=1.0), Telling(a=2.0), Telling(a=3.0)], {"a": 1.0, "telling-2.a": 2.0, "telling-3.a": 3.0}),
        ([DataProvider([1, 2])], {"examples": 0}),
    ],
    ids=["nested", "the same name", "a provider"],
)
def test_all_items_are_asked_and_a_name_that_comes_again_gets_its_items_name_before_it(items, expected):
    assert log_values(State(runner=Runner(*items))) == expected


def test_a_state_without_a_runner_has_no_readings():
    assert log_values(State()) == {}


def test_the_loss_is_read_if_there_is_one():
    assert loss_of(State()) == {}
    assert loss_of(State(loss=0.5)) == {"loss": 0.5}
