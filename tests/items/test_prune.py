"""Prune: what an Optuna study is told, and what it decides."""

import optuna
import pytest

from onion import CompositionError, Prune, Runner
from onion.testing import Batches
from tests.items.reporting import Reporting

optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture
def study():
    """A study with one trial that was good from the beginning."""
    study = optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner(n_startup_trials=1))
    trial = study.ask()
    run(Prune(trial, "accuracy"), [0.5, None, 0.6, 0.7])
    study.tell(trial, 0.7)
    return study


def run(prune, values, **limits):
    return Runner(prune, Reporting("accuracy", values), Batches(len(values))).run(**limits or {"passes": 1})


def test_the_study_sees_each_value_by_the_number_of_the_test(study):
    assert study.trials[0].intermediate_values == {0: 0.5, 1: 0.6, 2: 0.7}


def test_a_run_that_falls_behind_is_stopped(study):
    prune = Prune(study.ask(), "accuracy")
    state = run(prune, [0.5, 0.5, None, 0.9])
    assert (state.step, prune.pruned, state.stopped) == (2, True, "trial 1 was pruned after 2 tests")


def test_a_run_that_keeps_up_is_not(study):
    prune = Prune(study.ask(), "accuracy")
    assert (run(prune, [0.5, 0.6, 0.9]).step, prune.pruned) == (3, False)


def test_a_run_that_lost_its_last_tests_reports_none_twice_and_is_judged_alike(study):
    """It was killed between its third report and the decision; its checkpoint knows of the first test only."""
    trial = study.ask()
    prune = Prune(trial, "accuracy")
    run(prune, [0.6])
    saved = prune.state_dict()
    run(prune_from(trial, saved), [0.6])
    trial.report(0.65, 2)
    again = prune_from(trial, saved)
    state = run(again, [0.6, 0.65, 0.9])
    assert study.trials[1].intermediate_values == {0: 0.6, 1: 0.6, 2: 0.65}
    assert (state.step, again.pruned) == (2, True)


def prune_from(trial, saved):
    prune = Prune(trial, "accuracy")
    prune.load_state_dict({**saved, "seen": -1})
    return prune


def test_a_run_that_was_given_up_stays_so(study):
    prune = Prune(study.ask(), "accuracy")
    run(prune, [0.1])
    again = prune_from(prune.trial, prune.state_dict())
    assert (run(again, [0.9, 0.9]).step, again.pruned) == (0, True)


def test_a_fixed_trial_runs_to_its_end():
    assert run(Prune(optuna.trial.FixedTrial({}), "accuracy"), [0.1, 0.2]).step == 2


def test_what_is_no_trial_is_refused():
    with pytest.raises(CompositionError, match="trial must be a trial of Optuna, got dict"):
        Prune({}, "accuracy")
