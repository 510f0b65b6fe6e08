"""Adjustable: settings that may be changed while a run goes on."""

import paddle
import pytest

from onion import OnionError, ParameterUpdater, schedules
from onion.training.adjustable import Adjustable


def held(low, high, whole=False):
    values = [low]
    return Adjustable(low, high, lambda: values[-1], values.append, whole), values


@pytest.mark.parametrize("value", [0.5, 1, 2.0])
def test_numbers_in_the_range_are_accepted(value):
    setting, _ = held(0.5, 2)
    setting.refuse("x", value)


@pytest.mark.parametrize("value", [0.4, 3, float("nan"), float("inf"), True, "1", None, 10**400, [1]])
def test_all_else_is_refused(value):
    setting, _ = held(0.5, 2)
    with pytest.raises(OnionError, match=r"x must be a number from 0.5 to 2, got"):
        setting.refuse("x", value)


@pytest.mark.parametrize("value", [1.5, 1.0, True])
def test_where_a_whole_number_is_wanted_others_are_refused(value):
    setting, _ = held(1, 9, whole=True)
    with pytest.raises(OnionError, match="must be an integer from 1 to 9"):
        setting.refuse("k", value)
    setting.refuse("k", 3)


def updater(rate):
    weight = paddle.nn.Linear(1, 1)
    return ParameterUpdater(paddle.optimizer.SGD(rate, parameters=weight.parameters()))


def test_an_updater_has_a_learning_rate():
    item = updater(0.1)
    setting = item.adjustable()["learning_rate"]
    assert setting.get() == pytest.approx(0.1)
    setting.set(0.02)
    assert setting.get() == item.rate == 0.02


def test_with_a_schedule_of_ours_it_is_the_peak():
    item = updater(schedules.constant(0.1, warmup_steps=5))
    setting = item.adjustable()["learning_rate"]
    assert setting.get() == pytest.approx(0.1)
    setting.set(0.4)
    assert setting.get() == 0.4


def test_a_schedule_that_sets_the_rate_itself_leaves_none():
    assert updater(paddle.optimizer.lr.StepDecay(0.1, 3)).adjustable() == {}
