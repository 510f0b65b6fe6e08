"""Adjustable: settings that may be changed while a run goes on."""

import paddle
import pytest

from onion import OnionError, ParameterUpdater, schedules
from onion.training.adjustable import Adjustable

ANY = Adjustable(0.5, 2, int, print)
WHOLE = Adjustable(1, 9, int, print, whole=True)


@pytest.mark.parametrize(("setting", "value"), [(ANY, 0.5), (ANY, 1), (ANY, 2.0), (WHOLE, 3)])
def test_numbers_in_the_range_are_accepted(setting, value):
    setting.refuse("x", value)


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        *((ANY, wrong, "a number from 0.5 to 2") for wrong in (0.4, 3, True, "1", None, 10**400, [1])),
        *((ANY, wrong, "a number from 0.5 to 2") for wrong in (float("nan"), float("inf"))),
        *((WHOLE, wrong, "an integer from 1 to 9") for wrong in (1.5, 1.0, True)),
    ],
)
def test_all_else_is_refused(setting, value, told):
    with pytest.raises(OnionError, match=f"x must be {told}, got"):
        setting.refuse("x", value)


def updater(rate):
    weight = paddle.nn.Linear(1, 1)
    return ParameterUpdater(paddle.optimizer.SGD(rate, parameters=weight.parameters()))


@pytest.mark.parametrize("rate", [0.1, schedules.constant(0.1, warmup_steps=5)], ids=["number", "peak of a schedule"])
def test_an_updater_has_a_learning_rate(rate):
    item = updater(rate)
    setting = item.adjustable()["learning_rate"]
    assert setting.get() == pytest.approx(0.1)
    setting.set(0.4)
    assert setting.get() == 0.4
    assert rate != 0.1 or item.rate == 0.4


def test_a_schedule_that_sets_the_rate_itself_leaves_none():
    assert updater(paddle.optimizer.lr.StepDecay(0.1, 3)).adjustable() == {}
