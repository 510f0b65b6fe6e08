"""Limit: an end by the clock."""

import pytest

from onion import CompositionError, Observer, Runner, Tester, TimeLimit
from onion.testing import Batches
from tests.rings import Clock


@pytest.mark.parametrize(("limit", "steps"), [(1, 1), (10, 1), (10.1, 2), (20, 2), (55, 6), (1000, 8)])
def test_the_run_ends_after_the_batch_in_which_the_time_is_over(limit, steps):
    clock = Clock()
    state = Runner(Batches(4), TimeLimit(limit, clock), clock.ring(10)).run(passes=2)
    assert state.step == steps
    assert state.stopped == (None if steps == 8 and limit > 80 else f"{limit:g} seconds are over")


def test_a_second_run_has_all_of_the_time_again():
    clock = Clock()
    runner = Runner(TimeLimit(25, clock), Batches(10), clock.ring(10))
    assert [runner.run(passes=1).step for _ in range(2)] == [3, 3]


def test_time_between_batches_counts():
    clock = Clock()
    test = Tester(Runner(Batches(1), clock.ring(20)), every=1)
    assert Runner(TimeLimit(25, clock), Batches(10), test).run(passes=1).step == 2


def test_an_inner_run_with_the_same_limit_leaves_the_outer_ones_time():
    clock = Clock()
    limit = TimeLimit(35, clock)
    inner = Runner(limit, Batches(9), clock.ring(10))
    runner = Runner(limit, Batches(10), Observer(on_pass_begin=lambda state: inner.run(passes=1, parent=state)))
    assert runner.run(passes=1).step == 1  # the inner run took 40 seconds, and stopped only itself


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "60", None, True])
def test_what_is_no_time_is_refused(seconds):
    with pytest.raises(CompositionError, match="must be a positive number"):
        TimeLimit(seconds)


def test_it_reads_the_clock_of_the_machine_by_default():
    assert Runner(TimeLimit(1e9), Batches(3)).run(passes=1).step == 3
    assert Runner(TimeLimit(1e-9), Batches(3)).run(passes=1).step == 1
