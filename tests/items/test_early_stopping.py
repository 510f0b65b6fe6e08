"""EarlyStopping: patience counted in values, never in batches, and as others count it."""

import math

import pytest

from onion import CompositionError, EarlyStopping, Observer, Runner
from onion.testing import Batches
from tests.items.reporting import Reporting


def stopping(**settings):
    return EarlyStopping("loss", **{"patience": 2, "mode": "min", **settings})


def run(stop, values, **limits):
    return Runner(stop, Reporting("loss", values), Batches(len(values))).run(**limits or {"passes": 1})


NAN = math.nan


@pytest.mark.parametrize(
    ("values", "settings", "step"),
    [
        ([5, 4, 3, 2, 1], {"patience": 1}, None),
        ([5, 6, 1, 1], {"patience": 1}, 2),
        ([5, 5, 1, 1], {"patience": 1}, 2),
        ([5, 6, 4, 1, 1], {}, None),
        ([5, 6, 6, 1, 1], {}, 3),
        ([5, 5, 5, 5], {}, 3),
        ([5, 6, 4, 6, 3], {}, None),
        ([5, 6, 4, 6, 6, 3], {}, 5),
        ([5, 6, 6, 4, 6, 6, 3], {"patience": 3}, None),
        ([5, 6, 5.5, 5.1, 1], {"patience": 3}, 4),
        ([None] * 9, {"patience": 1}, None),
        ([5, None, None, 6, None, None, None, None, None, 6, None], {"patience": 3}, None),
        ([5, None, None, 6, None, None, None, None, None, 6, None, 6, None], {"patience": 3}, 12),
        ([5, 4.5, 4.25, 4], {"min_delta": 1.0}, 3),
        ([5, 4.5, 3.75, 2.5], {"min_delta": 1.0}, None),
        ([5, 4, 3], {"patience": 1, "min_delta": 1.0}, 2),
        ([5, NAN, 6, NAN, 4], {"patience": 3}, 4),
        ([NAN, NAN, 5, 4, 3], {"patience": 3}, None),
        ([NAN] * 4, {"patience": 3}, 3),
    ],
)
def test_so_many_values_in_a_row_that_are_not_better_stop_the_run(values, settings, step):
    negative = [None if value is None else -value for value in values]
    for state in run(stopping(**settings), values), run(stopping(**settings, mode="max"), negative):
        assert (state.step if state.stopped else None) == step


def test_the_mode_is_more_is_better_and_the_patience_three_by_default():
    assert run(EarlyStopping("loss"), [1, 2, 1, 1, 1, 3]).step == 5


@pytest.mark.parametrize(("patience", "tests"), [(1, "1 test"), (2, "2 tests")])
def test_the_reason_names_metric_value_and_failures(patience, tests):
    stopped = run(stopping(patience=patience, mode="max"), [2, 1, 1, 1]).stopped
    assert stopped == f"loss has not improved on 2 for {tests}"


def test_a_name_that_nothing_reports_is_warned_of_once(caplog):
    Runner(EarlyStopping("dev.lost", mode="min"), Reporting("loss", [3, 2] * 3), Batches(2)).run(passes=3)
    assert caplog.messages == ["early_stopping: nothing has reported 'dev.lost'; there is loss"]


def test_values_reported_at_the_end_of_passes_count():
    values = iter([3, 4, 4])
    report = Observer(on_pass_end=lambda state: state.report({"loss": next(values)}))
    state = Runner(stopping(), report, Batches(2)).run(passes=9)
    assert (state.step, state.pass_id, state.pass_cut) == (6, 3, False)


def test_inside_the_item_that_reports_it_looks_one_batch_late_but_at_every_value_once():
    assert Runner(Reporting("loss", [5, 6, 6, 6, 6]), stopping(), Batches(5)).run(passes=1).step == 4


def test_a_second_run_starts_without_a_best_value():
    runner = Runner(stopping(patience=1), Reporting("loss", [5, 6, 1, 1]), Batches(4))
    assert [runner.run(passes=1).step for _ in range(2)] == [2, 2]


def test_a_run_that_was_stopped_stays_stopped_when_it_is_resumed():
    stop, resumed = stopping(), stopping()
    stopped = run(stop, [5, 6, 6]).stopped
    resumed.load_state_dict(stop.state_dict())
    state = run(resumed, [1, 1])
    assert (state.step, state.stopped) == (0, stopped)


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
def test_wrong_arguments_are_refused(given, says):
    with pytest.raises(CompositionError, match=says):
        EarlyStopping(**{"monitor": "loss", **given})
