"""Periodic: every N steps counted over the run, or at the end of every pass that was not cut."""

import pytest

from onion import CompositionError, Logger, Runner, RunnerItem, Saver, TensorBoard, Tester
from onion.items.periodic import Periodic
from onion.testing import Batches


class Acting(Periodic):
    def __init__(self, every):
        super().__init__(every)
        self.acted = []

    def act(self, state):
        self.acted.append((state.pass_id, state.batch_id, state.step))


def steps(acting):
    return [step for _, _, step in acting.acted]


def test_it_acts_every_nth_step_over_all_passes():
    acting = Acting(3)
    Runner(acting, Batches(4)).run(passes=3)
    assert steps(acting) == [3, 6, 9, 12]


def test_it_acts_on_the_way_out_with_the_batch_counted():
    acting = Acting(2)
    Runner(acting, Batches(4)).run(passes=1)
    assert acting.acted == [(0, 1, 2), (0, 3, 4)]


def test_it_acts_at_the_end_of_every_pass():
    acting = Acting("pass")
    Runner(acting, Batches(4)).run(passes=2)
    assert acting.acted == [(0, 4, 4), (1, 4, 8)]


def test_it_does_not_act_after_a_pass_that_was_cut():
    acting = Acting("pass")
    Runner(acting, Batches(4)).run(steps=6)
    assert steps(acting) == [4]


def test_it_acts_after_a_pass_whose_last_batch_is_the_last_of_the_run():
    acting = Acting("pass")
    Runner(acting, Batches(4)).run(steps=8)
    assert steps(acting) == [4, 8]


class SkipOdd(RunnerItem):
    def on_batch(self, state):
        if state.batch % 2 == 0:
            yield


def test_a_skipped_batch_completes_no_period_wherever_the_skipping_item_stands():
    inside, outside = Acting(1), Acting(1)
    Runner(outside, SkipOdd(), inside, Batches(6)).run(passes=1)
    assert steps(outside) == steps(inside) == [1, 2, 3]


class Twice(RunnerItem):
    def on_batch(self, state):
        yield
        yield


def test_a_batch_that_is_run_twice_acts_once_outside():
    acting = Acting(1)
    Runner(acting, Twice(), Batches(2)).run(passes=1)
    assert steps(acting) == [1, 2]


@pytest.mark.parametrize("every", [0, -1, 1.5, True, None, "epoch", ""])
@pytest.mark.parametrize(
    "make",
    [
        Periodic,
        lambda every: Saver("out", every),
        lambda every: Logger("log", every),
        lambda every: Tester(Runner(Batches(1)), every),
        lambda every: TensorBoard("out", every),
    ],
)
def test_a_period_that_is_none_is_refused_with_what_may_stand_there(make, every):
    with pytest.raises(CompositionError, match=r': every=.* is neither a number of steps nor "pass"\.') as caught:
        make(every)
    assert repr(every) in str(caught.value)
    assert str(caught.value).split(":")[0] in {"Periodic", "Saver", "Logger", "Tester", "TensorBoard"}
