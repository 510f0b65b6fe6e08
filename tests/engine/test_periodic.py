"""Periodic: every N steps counted over the run, every so much time, or at the end of every pass that was not cut."""

from datetime import timedelta

import pytest

from onion import CompositionError, Every, Logger, Repeat, Runner, Saver, SkipIf, TensorBoardWriter, Tester, Tracker
from onion.engine import periodic
from onion.engine.periodic import Periodic
from onion.testing import Batches
from tests.rings import Clock


def odd(state):
    return state.batch % 2


class Acting(Periodic):
    def __init__(self, every):
        super().__init__(every)
        self.acted, self.steps = [], []

    def act(self, state):
        self.acted.append((state.pass_id, state.batch_id, state.step))
        self.steps.append(state.step)


@pytest.mark.parametrize(
    ("every", "limits", "acted"),
    [
        (3, {"passes": 3}, [(0, 2, 3), (1, 1, 6), (2, 0, 9), (2, 3, 12)]),
        (2, {"passes": 1}, [(0, 1, 2), (0, 3, 4)]),
        ("pass", {"passes": 2}, [(0, 4, 4), (1, 4, 8)]),
        ("pass", {"steps": 6}, [(0, 4, 4)]),  # not after the pass that is cut
        ("pass", {"steps": 8}, [(0, 4, 4), (1, 4, 8)]),
    ],
)
def test_it_acts_on_the_way_out_with_the_batch_counted(every, limits, acted):
    acting = Acting(every)
    Runner(acting, Batches(4)).run(**limits)
    assert acting.acted == acted


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(periodic, "monotonic", clock)
    return clock


@pytest.mark.parametrize(("seconds", "expected"), [(4, [4, 7, 10]), (10, [2, 3, 4, 5, 6, 7, 8, 9, 10]), (0.5, [])])
def test_it_acts_after_the_first_step_that_ends_when_the_time_is_up(seconds, expected, clock):
    acting = Acting(timedelta(seconds=10))
    Runner(acting, clock.ring(seconds), Batches(5)).run(passes=2)
    assert acting.steps == expected


def test_every_run_has_its_own_time(clock):
    acting = Acting(timedelta(seconds=10))
    runner = Runner(acting, clock.ring(8), Batches(3))
    runner.run(passes=1)
    runner.run(passes=1)
    assert acting.steps == [3, 3]


def test_a_skipped_batch_is_not_acted_on_when_the_time_is_up(clock):
    acting = Acting(timedelta(seconds=1))
    Runner(acting, clock.ring(5), Batches(6), SkipIf(odd)).run(passes=1)
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


@pytest.mark.parametrize(
    ("every", "compose", "expected"),
    [
        (1, lambda acting: [acting, Batches(6), SkipIf(odd)], [1, 2, 3]),
        (1, lambda acting: [Batches(6), SkipIf(odd), acting], [1, 2, 3]),
        (1, lambda acting: [acting, Repeat(2), Batches(2)], [1, 2]),
        ("pass", lambda acting: [Batches(4), Runner(acting)], [4]),
        (2, lambda acting: [Batches(6), Every(3, acting)], [6]),
    ],
    ids=["outside a skip", "inside a skip", "outside a repetition", "nested, by passes", "held by Every"],
)
def test_steps_are_what_counts_wherever_it_stands(every, compose, expected):
    acting = Acting(every)
    Runner(*compose(acting)).run(passes=1)
    assert acting.steps == expected


@pytest.mark.parametrize("every", [0, -1, 1.5, True, None, "epoch", "", timedelta(0), timedelta(seconds=-1), timedelta])
@pytest.mark.parametrize(
    "make",
    [
        Periodic,
        lambda every: Saver("out", every),
        lambda every: Logger("log", every),
        lambda every: Tester(Runner(Batches(1)), every),
        lambda every: Tracker(TensorBoardWriter("out"), every),
    ],
)
def test_a_period_that_is_none_is_refused_with_what_may_stand_there(make, every):
    with pytest.raises(CompositionError, match=r': every must be a number of steps .* or "pass"; got ') as caught:
        make(every)
    assert repr(every) in str(caught.value)
    assert str(caught.value).split(":")[0] in {"Periodic", "Saver", "Logger", "Tester", "Tracker"}
