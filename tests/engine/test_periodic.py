"""Periodic: every N steps counted over the run, every so much time, or at the end of every pass that was not cut."""

from datetime import timedelta

import pytest

from onion import CompositionError, Every, Logger, Runner, RunnerItem, Saver, TensorBoard, Tester
from onion.engine import periodic
from onion.engine.periodic import Periodic
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


class Clock(RunnerItem):
    """A clock that a batch moves by so many seconds."""

    def __init__(self, monkeypatch, seconds):
        self.seconds, self.now = seconds, 1000.0
        monkeypatch.setattr(periodic, "monotonic", lambda: self.now)

    def on_batch(self, state):
        self.now += self.seconds


@pytest.mark.parametrize(("seconds", "expected"), [(4, [4, 7, 10]), (10, [2, 3, 4, 5, 6, 7, 8, 9, 10]), (0.5, [])])
def test_it_acts_after_the_first_step_that_ends_when_the_time_is_up(seconds, expected, monkeypatch):
    acting = Acting(timedelta(seconds=10))
    Runner(acting, Clock(monkeypatch, seconds), Batches(5)).run(passes=2)
    assert steps(acting) == expected


def test_every_run_has_its_own_time(monkeypatch):
    acting = Acting(timedelta(seconds=10))
    runner = Runner(acting, Clock(monkeypatch, 8), Batches(3))
    runner.run(passes=1)
    runner.run(passes=1)
    assert steps(acting) == [3, 3]


def test_a_skipped_batch_is_not_acted_on_when_the_time_is_up(monkeypatch):
    acting = Acting(timedelta(seconds=1))
    Runner(acting, Clock(monkeypatch, 5), SkipOdd(), Batches(6)).run(passes=1)
    assert acting.acted == [(0, 2, 2), (0, 4, 3)]


def test_the_time_is_drawn():
    assert "acting  Acting(every=0:10:00)" in str(Runner(Acting(timedelta(minutes=10)), Batches(1)))


@pytest.mark.parametrize("every", [1, timedelta(seconds=1)])
def test_in_a_nested_runner_it_would_never_act_and_is_refused(every):
    nested = Runner(Acting(every), name="critic")
    with pytest.raises(CompositionError, match="acting is in critic, whose items leave a batch before it counts"):
        Runner(Batches(1), nested)
    with pytest.raises(CompositionError, match="acting is in critic"):
        Runner(Batches(1), Runner(nested, name="outer"))


def test_in_a_nested_runner_it_may_act_by_passes():
    acting = Acting("pass")
    Runner(Batches(4), Runner(acting)).run(passes=2)
    assert steps(acting) == [4, 8]


def test_in_a_ring_that_is_there_sometimes_it_acts():
    acting = Acting(2)
    Runner(Batches(6), Every(3, acting)).run(passes=1)
    assert steps(acting) == [6]


@pytest.mark.parametrize("every", [0, -1, 1.5, True, None, "epoch", "", timedelta(0), timedelta(seconds=-1), timedelta])
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
    with pytest.raises(CompositionError, match=r': every must be a number of steps .* or "pass"; got ') as caught:
        make(every)
    assert repr(every) in str(caught.value)
    assert str(caught.value).split(":")[0] in {"Periodic", "Saver", "Logger", "Tester", "TensorBoard"}
