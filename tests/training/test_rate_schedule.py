"""The learning rate schedule of an optimizer, with the numbers that Paddle's own state leaves out."""

import paddle
import pytest

from onion import CheckpointError, CompositionError, schedules
from onion.testing import toy_network
from onion.training import rate_schedule

lr = paddle.optimizer.lr


def restarts():
    return lr.CosineAnnealingWarmRestarts(0.1, T_0=3, T_mult=2)


class Within(lr.LRScheduler):
    """A schedule that steps another one, which Paddle's state_dict does not cover."""

    def __init__(self):
        self.inner = restarts()
        super().__init__(0.1)

    def get_lr(self):
        if self.last_epoch > 0:
            self.inner.step()
        return self.inner()


def stepped(schedule, steps):
    for _ in range(steps):
        schedule.step()
    return schedule


def optimizer_with(rate):
    return paddle.optimizer.SGD(rate, parameters=toy_network().parameters())


def test_a_schedule_is_found_and_a_number_is_none():
    schedule = restarts()
    assert rate_schedule.of(optimizer_with(schedule)) is schedule
    assert rate_schedule.of(optimizer_with(0.1)) is None
    assert rate_schedule.of(object()) is None


def test_a_schedule_that_wants_a_metric_is_refused():
    told = r"ReduceOnPlateau\.step requires a metric; give the optimizer a plain number"
    with pytest.raises(CompositionError, match=told):
        rate_schedule.of(optimizer_with(lr.ReduceOnPlateau(0.1)))


@pytest.mark.parametrize(
    "make",
    [restarts, Within, lambda: lr.LinearWarmup(restarts(), 2, 0.0, 0.1), lambda: schedules.cosine(1.0, total_steps=9)],
)
@pytest.mark.parametrize("steps", [0, 1, 4, 9])
def test_a_restored_schedule_goes_on_with_the_same_rates(make, steps):
    first, second = stepped(make(), steps), make()
    rate_schedule.restore(second, rate_schedule.saved(first))
    assert [stepped(first, 1)() for _ in range(12)] == [stepped(second, 1)() for _ in range(12)]


def test_numbers_are_restored_at_any_depth_and_settings_stay_those_of_the_program():
    other = Within()
    rate_schedule.restore(other, rate_schedule.saved(stepped(Within(), 4)))
    assert (other.inner.last_epoch, other.inner.T_cur, other.inner.T_i) == (4, 1, 6)
    other = lr.CosineAnnealingWarmRestarts(0.2, T_0=5, T_mult=3, eta_min=0.01)
    rate_schedule.restore(other, rate_schedule.saved(stepped(restarts(), 4)))
    assert (other.base_lr, other.T_0, other.T_mult, other.eta_min) == (0.2, 5, 3, 0.01)
    assert (other.T_cur, other.T_i) == (1, 6)


def test_numbers_that_are_missing_or_that_a_schedule_does_not_have_are_left_alone():
    saved = rate_schedule.saved(stepped(restarts(), 4))
    other = lr.CosineAnnealingDecay(0.1, 7)
    rate_schedule.restore(other, saved)
    assert not hasattr(other, "T_cur")
    del saved[rate_schedule.NUMBERS]
    same = restarts()
    rate_schedule.restore(same, saved)
    assert (same.last_epoch, same.T_cur) == (4, 0)


SAVED = rate_schedule.saved(restarts())


@pytest.mark.parametrize(
    ("schedule", "saved", "told"),
    [
        (None, SAVED, "updater: the checkpoint has a learning rate schedule, but the optimizer has none"),
        (restarts(), {}, "updater: the optimizer has a learning rate schedule, but the checkpoint has none"),
        (lr.LinearWarmup(restarts(), 2, 0.0, 0.1), SAVED, "the saved learning rate schedule is not a LinearWarmup"),
    ],
)
def test_another_schedule_is_refused_and_the_same_is_not(schedule, saved, told):
    with pytest.raises(CheckpointError, match=told):
        rate_schedule.refuse_other(schedule, saved, "updater")
    rate_schedule.refuse_other(restarts(), SAVED, "updater")
    rate_schedule.refuse_other(None, {}, "updater")
