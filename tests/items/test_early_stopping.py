"""EarlyStopping: patience counted in values, never in batches, and as others count it."""

import math

import pytest

from onion import CompositionError, EarlyStopping, Observer, Runner, RunnerItem
from onion.testing import Batches


class Reporting(RunnerItem):
    """Report planned values, one a batch; None is no report."""

    def __init__(self, values):
        self.values = values

    def on_batch(self, state):
        yield
        if (value := self.values[state.step - 1]) is not None:
            state.report({"loss": value})


def stopped_after(values, **settings):
    stop = EarlyStopping("loss", **{"patience": 2, "mode": "min", **settings})
    state = Runner(stop, Reporting(values), Batches(len(values))).run(passes=1)
    return state.step if state.stopped else None


@pytest.mark.parametrize(
    ("values", "patience", "step"),
    [
        ([5, 4, 3, 2, 1], 1, None),
        ([5, 6, 1, 1], 1, 2),
        ([5, 5, 1, 1], 1, 2),
        ([5, 6, 4, 1, 1], 2, None),
        ([5, 6, 6, 1, 1], 2, 3),
        ([5, 6, 4, 6, 3], 2, None),
        ([5, 6, 4, 6, 6, 3], 2, 5),
        ([5, 6, 6, 4, 6, 6, 3], 3, None),
        ([5, 6, 5.5, 5.1, 1], 3, 4),
    ],
)
def test_as_many_failures_in_a_row_as_the_patience_stop(values, patience, step):
    assert stopped_after(values, patience=patience) == step
    assert stopped_after([-value for value in values], patience=patience, mode="max") == step


def test_the_mode_is_more_is_better_and_the_patience_three_by_default():
    state = Runner(EarlyStopping("loss"), Reporting([1, 2, 1, 1, 1, 3]), Batches(6)).run(passes=1)
    assert state.step == 5


def test_the_reason_names_metric_value_and_failures():
    state = Runner(EarlyStopping("loss", patience=2), Reporting([2, 1, 1, 1]), Batches(4)).run(passes=1)
    assert state.stopped == "loss has not improved on 2 for 2 tests"
    state = Runner(EarlyStopping("loss", patience=1), Reporting([2, 1, 1, 1]), Batches(4)).run(passes=1)
    assert state.stopped == "loss has not improved on 2 for 1 test"


def test_stale_values_are_not_counted_twice():
    assert stopped_after([5, None, None, 6, None, None, None, None, None, 6, None], patience=3) is None
    assert stopped_after([5, None, None, 6, None, None, None, None, None, 6, None, 6, None], patience=3) == 12


def test_an_equal_value_that_was_reported_anew_counts():
    assert stopped_after([5, 5, 5, 5], patience=2) == 3


def test_better_by_too_little_is_no_improvement():
    assert stopped_after([5, 4.5, 4.25, 4], patience=2, min_delta=1.0) == 3
    assert stopped_after([5, 4.5, 3.75, 2.5], patience=2, min_delta=1.0) is None
    assert stopped_after([5, 4, 3], patience=1, min_delta=1.0) == 2


def test_what_is_no_number_is_a_failure_and_never_the_best():
    assert stopped_after([5, math.nan, 6, math.nan, 4], patience=3) == 4
    assert stopped_after([math.nan, math.nan, 5, 4, 3], patience=3) is None
    assert stopped_after([math.nan] * 4, patience=3) == 3


def test_a_metric_that_is_never_reported_stops_nothing():
    assert stopped_after([None] * 9, patience=1) is None


def test_a_name_that_nothing_reports_is_told_once(caplog):
    stop = EarlyStopping("dev.lost", mode="min")
    Runner(stop, Reporting([3, 2] * 3), Batches(2)).run(passes=3)
    assert caplog.messages == ["early_stopping: nothing has reported 'dev.lost'; there is loss"]


def test_values_reported_at_the_end_of_passes_count():
    values = iter([3, 4, 4])
    report = Observer(on_pass_end=lambda state: state.report({"loss": next(values)}))
    state = Runner(EarlyStopping("loss", patience=2, mode="min"), report, Batches(2)).run(passes=9)
    assert (state.step, state.pass_id) == (6, 3)
    assert not state.pass_cut


def test_inside_the_item_that_reports_it_looks_one_batch_late_but_at_every_value_once():
    stop = EarlyStopping("loss", patience=2, mode="min")
    state = Runner(Reporting([5, 6, 6, 6, 6]), stop, Batches(5)).run(passes=1)
    assert state.step == 4


def test_a_second_run_begins_anew():
    runner = Runner(EarlyStopping("loss", patience=1, mode="min"), Reporting([5, 6, 1, 1]), Batches(4))
    assert runner.run(passes=1).step == 2
    assert runner.run(passes=1).step == 2


def resumed(values, saved, step, reported):
    def begin(state):
        state.step = state.batch_id = step
        state.report({"loss": reported})

    stop = EarlyStopping("loss", patience=3, mode="min")
    stop.load_state_dict(saved)
    return Runner(Observer(initialize=begin), stop, Reporting(values), Batches(values[step:])).run(passes=1)


@pytest.mark.parametrize("cut", range(1, 8))
def test_best_and_failures_survive_a_resumption(cut):
    values = [5, 6, 4, 6, None, 6, 6, 3]
    stop = EarlyStopping("loss", patience=3, mode="min")
    state = Runner(stop, Reporting(values), Batches(8)).run(steps=cut)
    saved = stop.state_dict()
    assert all(value is None or isinstance(value, (int, float)) for value in saved.values())
    state = resumed(values, saved, cut, state.metrics["loss"])
    assert state.step == 7
    assert state.stopped == "loss has not improved on 4 for 3 tests"


def test_a_run_that_was_stopped_stays_stopped_when_it_is_resumed():
    values = [5, 6, 6, 6, 1, 1]
    stop = EarlyStopping("loss", patience=3, mode="min")
    state = Runner(stop, Reporting(values), Batches(6)).run(passes=1)
    assert state.step == 4
    assert resumed(values, stop.state_dict(), 4, 6).step == 4


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"patience": 0}, "patience must be an integer >= 1, got 0; 1 stops at the first value that is not better"),
        ({"patience": 2.5}, "patience must be an integer >= 1, got 2.5"),
        ({"patience": True}, "patience must be an integer >= 1, got True"),
        ({"monitor": ""}, "monitor must be a metric's name such as 'tester.accuracy', got ''"),
        ({"mode": "least"}, "mode must be 'max' or 'min', got 'least'"),
        ({"min_delta": math.nan}, "min_delta must be a number >= 0, got nan"),
    ],
)
def test_what_is_no_argument_is_refused(given, says):
    with pytest.raises(CompositionError, match=says):
        EarlyStopping(**{"monitor": "loss", **given})
