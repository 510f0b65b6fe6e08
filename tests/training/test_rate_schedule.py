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
    """A schedule of one's own that leads another by the hand; Paddle's state_dict knows nothing of that."""

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
    with pytest.raises(
        CompositionError, match=r"ReduceOnPlateau\.step requires a metric; give the optimizer a plain number"
    ):
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


def test_the_numbers_of_a_schedule_within_another_are_taken_back():
    other = Within()
    rate_schedule.restore(other, rate_schedule.saved(stepped(Within(), 4)))
    assert (other.inner.last_epoch, other.inner.T_cur, other.inner.T_i) == (4, 1, 6)


def test_settings_stay_those_of_the_program():
    other = lr.CosineAnnealingWarmRestarts(0.2, T_0=5, T_mult=3, eta_min=0.01)
    rate_schedule.restore(other, rate_schedule.saved(stepped(restarts(), 4)))
    assert (other.base_lr, other.T_0, other.T_mult, other.eta_min) == (0.2, 5, 3, 0.01)
    assert (other.T_cur, other.T_i) == (1, 6)


def test_a_state_without_numbers_is_taken_as_ever():
    saved = rate_schedule.saved(stepped(restarts(), 4))
    del saved[rate_schedule.NUMBERS]
    other = restarts()
    rate_schedule.restore(other, saved)
    assert (other.last_epoch, other.T_cur) == (4, 0)


def test_numbers_that_a_schedule_has_no_more_are_left_alone():
    other = lr.CosineAnnealingDecay(0.1, 7)
    rate_schedule.restore(other, rate_schedule.saved(stepped(restarts(), 4)))
    assert not hasattr(other, "T_cur")


def test_another_schedule_is_refused_and_the_same_is_not():
    saved = rate_schedule.saved(restarts())
    rate_schedule.refuse_other(restarts(), saved, "updater")
    rate_schedule.refuse_other(None, {}, "updater")
    with pytest.raises(
        CheckpointError, match="updater: the checkpoint has a learning rate schedule, but the optimizer"
    ):
        rate_schedule.refuse_other(None, saved, "updater")
    with pytest.raises(
        CheckpointError, match="updater: the optimizer has a learning rate schedule, but the checkpoint"
    ):
        rate_schedule.refuse_other(restarts(), {}, "updater")
    with pytest.raises(CheckpointError, match="the saved learning rate schedule is not a LinearWarmup"):
        rate_schedule.refuse_other(lr.LinearWarmup(restarts(), 2, 0.0, 0.1), saved, "updater")
