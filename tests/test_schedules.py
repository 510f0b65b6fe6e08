"""Schedules: each equals its formula at every step; tests/test_resumption.py resumes runs with each of them."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion import CompositionError, schedules


def rates(schedule, count):
    """Return the rate of each of so many updates, as ParameterUpdater would see them."""
    found = []
    for _ in range(count):
        found.append(schedule())
        schedule.step()
    return found


def close(found, wanted):
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-15)


HALF = math.sqrt(0.5) / 2
WORKED_OUT = {
    "constant": (schedules.constant(0.5), [0.5] * 4),
    "constant with warmup": (schedules.constant(0.5, warmup_steps=4), [0, 0.125, 0.25, 0.375, 0.5, 0.5]),
    "linear": (schedules.linear_warmup_and_decay(1.0, 8, 0.5), [0, 1 / 4, 2 / 4, 3 / 4, 1, 3 / 4, 2 / 4, 1 / 4, 0, 0]),
    # It jumps at the end of the warmup.
    "palm_linear": (schedules.palm_linear(1.0, 8, 0.5), [0, 1 / 4, 2 / 4, 3 / 4, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 0, 0]),
    "polynomial": (
        schedules.polynomial(1.0, 6, warmup_ratio=1 / 3, power=2.0, end=0.2),
        [0, 0.5, 1.0, 0.2 + 0.8 * 9 / 16, 0.2 + 0.8 * 4 / 16, 0.2 + 0.8 / 16, 0.2, 0.2, 0.2],
    ),
    "cosine": (schedules.cosine(1.0, 5, warmup_ratio=0.2), [0, 1, 0.5 + HALF, 0.5, 0.5 - HALF, 0, 0, 0]),
    "one and a half waves": (schedules.cosine(1.0, 6, warmup_ratio=0, cycles=1.5), [1, 0.5, 0, 0.5, 1, 0.5, 0]),
    # Its peak is the last update of the warmup.
    "noam": (schedules.noam(0.5, 4), [0.125, 0.25, 0.375, *(0.5 * math.sqrt(4 / step) for step in range(4, 17))]),
}


@pytest.mark.parametrize("name", WORKED_OUT)
def test_rates_that_are_worked_out(name):
    schedule, wanted = WORKED_OUT[name]
    close(rates(schedule, len(wanted)), wanted)


def palm_triangular(step, lr, warmup_steps, num_train_steps):
    """paddlepalm/lr_sched/slanted_triangular_schedualer.py."""
    return lr * step / warmup_steps if step < warmup_steps else lr * (1 - step / num_train_steps)


def ernie_noam(step, lr, warmup_steps):
    """ernie/optimization.py calls fluid's noam_decay with this d_model; its steps count from 1."""
    d_model = 1 / (warmup_steps * lr**2)
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def transformers_linear(step, warmup, total):
    if step < warmup:
        return step / max(1, warmup)
    return max(0.0, (total - step) / max(1, total - warmup))


def transformers_cosine(step, warmup, total, cycles=0.5):
    if step < warmup:
        return step / max(1, warmup)
    progress = (step - warmup) / max(1, total - warmup)
    return max(0.0, 0.5 * (1.0 + math.cos(math.pi * cycles * 2.0 * progress)))


def transformers_polynomial(step, warmup, total, lr, power, end):
    if step < warmup:
        return step / max(1, warmup)
    if step > total:
        return end / lr
    return ((lr - end) * (1 - (step - warmup) / (total - warmup)) ** power + end) / lr


def transformers_constant_with_warmup(step, warmup):
    return step / max(1.0, warmup) if step < warmup else 1.0


@pytest.mark.parametrize("total", [1, 2, 7, 20, 100])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.25, 0.5, 0.9])
def test_with_a_known_end_they_equal_the_published_formulas_at_every_step(total, warmup):
    lr, rising = 3e-5, round(total * warmup)
    if rising == total:
        return  # transformers divides by zero
    steps = range(total + 1)
    count = len(steps)
    found = rates(schedules.linear_warmup_and_decay(lr, total, warmup), count)
    close(found, [lr * transformers_linear(step, rising, total) for step in steps])
    for cycles in (0.5, 1.0, 2.5):
        found = rates(schedules.cosine(lr, total, warmup, cycles), count)
        close(found, [lr * transformers_cosine(step, rising, total, cycles) for step in steps])
    for power, end in [(1.0, 1e-7), (0.5, 0.0), (3.0, 1e-6)]:
        found = rates(schedules.polynomial(lr, total, warmup, power, end), count)
        close(found, [lr * transformers_polynomial(step, rising, total, lr, power, end) for step in steps])
    if rising:
        found = rates(schedules.palm_linear(lr, total, warmup), count)
        close(found, [palm_triangular(step, lr, rising, total) for step in steps])


@pytest.mark.parametrize("warmup", [1, 2, 7, 40])
def test_without_an_end_they_equal_the_published_formulas_at_every_step(warmup):
    lr, steps = 3e-5, range(100)
    close(
        rates(schedules.constant(lr, warmup), 100), [lr * transformers_constant_with_warmup(n, warmup) for n in steps]
    )
    close(rates(schedules.noam(lr, warmup), 100), [ernie_noam(n + 1, lr, warmup) for n in steps])


@pytest.mark.parametrize(
    "schedule",
    [
        lambda: schedules.constant(0.5, 0),
        lambda: schedules.palm_linear(0.5, 10, warmup_ratio=0),
        lambda: schedules.noam(0.5, 0),
    ],
)
def test_without_a_warm_up_ernies_schedules_are_constant(schedule):
    assert rates(schedule(), 15) == [0.5] * 15


@pytest.mark.parametrize("schedule", [schedules.linear_warmup_and_decay, schedules.polynomial, schedules.cosine])
def test_without_a_warm_up_the_others_begin_at_the_top(schedule):
    found = rates(schedule(0.5, 10, warmup_ratio=0), 11)
    assert found[0] == 0.5
    assert found[-1] == 0
    assert found == sorted(found, reverse=True)


WITH_AN_END = [schedules.linear_warmup_and_decay, schedules.palm_linear, schedules.polynomial, schedules.cosine]


@given(st.sampled_from(WITH_AN_END), st.integers(1, 150), st.floats(0.01, 1))
def test_rates_stay_between_nothing_and_the_top_and_end_at_nothing(schedule, steps, warmup):
    found = rates(schedule(1.0, steps, warmup), steps + 3)
    assert all(0 <= rate <= 1 for rate in found)
    if round(steps * warmup):
        assert found[0] == 0
        assert found[steps:] == pytest.approx([0, 0, 0], abs=1e-15)


@given(st.integers(2, 100), st.floats(0.01, 0.9))
def test_only_the_original_jumps(steps, warmup):
    rising = round(steps * warmup)
    steepest = 1 / max(1, min(rising or steps, steps - rising))

    def largest_change(schedule):
        found = rates(schedule(1.0, steps, warmup), steps)
        return max(abs(after - before) for before, after in pairwise(found))

    assert largest_change(schedules.linear_warmup_and_decay) <= steepest + 1e-9
    if 2 <= rising < steps:  # with no step left to fall in, there is no jump either
        ours, theirs = (rates(each(1.0, steps, warmup), rising + 1) for each in WITH_AN_END[:2])
        assert ours[:-1] == theirs[:-1]
        assert ours[-1] - theirs[-1] == pytest.approx(rising / steps)


@pytest.mark.parametrize("schedule", WITH_AN_END)
def test_a_warm_up_in_updates_is_that_of_the_same_share(schedule):
    assert rates(schedule(1.0, 12, warmup_steps=3), 14) == rates(schedule(1.0, 12, 0.25), 14)
    assert rates(schedule(1.0, 4, 0.5, warmup_steps=8), 4) == [0, 1 / 8, 2 / 8, 3 / 8]  # the run ends before its top
    with pytest.raises(CompositionError, match="warmup_steps must be >= 0, got -1"):
        schedule(0.1, 10, warmup_steps=-1)


@pytest.mark.parametrize("schedule", WITH_AN_END)
def test_a_rate_of_zero_stays_zero(schedule):
    assert rates(schedule(0, 5, 0.4), 6) == rates(schedule(0.0, 5, 0.4), 6) == [0] * 6


@pytest.mark.parametrize("schedule", WITH_AN_END)
@pytest.mark.parametrize("warmup", [-0.1, 1.5, 100, float("nan")])
def test_a_warm_up_that_is_no_share_and_a_negative_number_of_steps_are_refused(schedule, warmup):
    with pytest.raises(CompositionError, match=f"warmup_ratio must be between 0 and 1 .*, got {warmup}"):
        schedule(0.1, 10, warmup)
    with pytest.raises(CompositionError, match="total_steps must be >= 0, got -3"):
        schedule(0.1, -3)


@pytest.mark.parametrize("schedule", [schedules.constant, schedules.noam])
def test_a_negative_warm_up_is_refused(schedule):
    with pytest.raises(CompositionError, match="warmup_steps must be >= 0, got -1"):
        schedule(0.1, -1)
