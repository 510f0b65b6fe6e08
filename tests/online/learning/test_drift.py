"""DriftDetector: what counts as a change, and what happens then; LearningRateBoost."""

import json
import sys

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river.drift import ADWIN

from onion import (
    CompositionError,
    DataProvider,
    Mailbox,
    Observer,
    OnionError,
    ParameterUpdater,
    Runner,
    Saver,
    SkipIf,
    State,
    schedules,
)
from onion.checkpointing import checkpoint
from onion.online.learning.drift import DriftDetector, LearningRateBoost, loss
from onion.testing import Batches, assert_resumes_exactly, toy_examples, toy_network
from tests.abilities import needs_draws_again
from tests.onions.learning_online import CHANGE, LEARNING_ONLINE
from tests.online.toys import learning

LOW, HIGH = 0.1, 0.9


def noisy(level, count, seed=0):
    """Errors of batches around a level."""
    return np.clip(np.random.default_rng(seed).normal(level, 0.1, count), 0, 1).tolist()


def watched(figures, **options):
    """Run a detector over batches that are their figures; return it, the state, and the steps at which it acted."""
    acted = []
    watch = DriftDetector(lambda state: acted.append(state.step), lambda state: state.batch, **options)
    state = Runner(Batches(figures), watch).run(passes=1)
    return watch, state, acted


# -- detection ---------------------------------------------------------------------------------------------------------


def test_a_steady_figure_is_no_change():
    _, state, acted = watched(noisy(0.5, 500))
    assert acted == []
    assert state.metrics == {}


def test_a_jump_is_detected_soon_and_once():
    _, state, acted = watched(noisy(0.2, 200) + noisy(0.9, 100))
    (step,) = acted
    assert 200 < step <= 260  # versions of river differ a little
    assert state.metrics == {"drift_detector.changes": 1}
    assert state.reported["drift_detector.changes"] == step


def test_the_steps_are_those_of_rivers_adwin():
    figures = noisy(0.2, 90) + noisy(0.7, 90) + noisy(0.1, 90) + noisy(0.5, 90)
    reference, wanted = ADWIN(delta=0.01, clock=1), []
    for step, figure in enumerate(figures, 1):
        reference.update(figure)
        if reference.drift_detected:
            wanted.append(step)
    _, _, acted = watched(figures, delta=0.01, change="both")
    assert acted == wanted
    assert len(wanted) >= 3


@pytest.mark.parametrize(("change", "jumps"), [("up", [100]), ("down", [200]), ("both", [100, 200])])
def test_a_change_counts_by_its_direction(change, jumps):
    _, _, acted = watched(noisy(0.2, 100) + noisy(0.8, 100) + noisy(0.2, 100), change=change)
    assert [step // 100 * 100 for step in acted] == jumps


def test_what_is_no_number_is_ignored():
    figures = noisy(0.2, 200) + noisy(0.6, 100)
    gaps = [each for figure in figures for each in (None, figure, float("nan"), float("inf"))]
    assert [(step - 2) // 4 + 1 for step in watched(gaps)[2]] == watched(figures)[2]


def test_figures_of_samples_show_a_change_sooner_than_their_means():
    random = np.random.default_rng(1)
    batches = [(random.random(32) < (0.2 if step < 60 else 0.5)).astype(float) for step in range(120)]
    (by_sample,), by_mean = watched(batches)[2], watched([batch.mean() for batch in batches])[2]
    assert 60 < by_sample <= 66
    assert by_mean == [] or by_mean[0] > by_sample


def test_a_smaller_delta_waits_longer():
    (soon,), (late,) = (watched(noisy(0.2, 200) + noisy(0.6, 200), delta=delta)[2] for delta in (0.2, 1e-9))
    assert soon < late


def test_a_second_run_starts_again():
    acted = []
    watch = DriftDetector(lambda state: acted.append(state.step), lambda state: state.batch)
    runner = Runner(Batches(noisy(0.2, 200) + noisy(0.9, 30)), watch)
    assert runner.run(passes=1).metrics == runner.run(passes=1).metrics == {"drift_detector.changes": 1}
    assert acted[0] == acted[1]


def test_the_loss_is_watched_by_default_and_a_skipped_batch_has_none():
    network, losses = toy_network(), []
    watch = DriftDetector(lambda state: None)
    look = Observer(on_batch_end=lambda state: losses.append(loss(state)))
    skip = SkipIf(lambda state: state.batch_id == 1)
    Runner(DataProvider(toy_examples(12), 4), watch, look, skip, *learning(network)).run(passes=1)
    assert losses[1] is None
    assert watch.state_dict()["figures"].tolist() == [losses[0], losses[2]]


# -- state and bounds --------------------------------------------------------------------------------------------------


def rebuilt(watch, **options):
    """Return a detector made of another one's state, as a checkpoint stores it."""
    saved = watch.state_dict()
    arrays = {key: value for key, value in saved.items() if isinstance(value, np.ndarray)}
    scalars = json.loads(json.dumps({key: value for key, value in saved.items() if key not in arrays}))
    other = DriftDetector(watch.act, watch.figure, **options)
    other.load_state_dict({**arrays, **scalars})
    return other


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.sampled_from([LOW, 0.3, 0.5, HIGH]), st.integers(1, 130)), min_size=1, max_size=4),
    st.sampled_from([100, 101, 10_000]),
    st.sampled_from(["up", "both"]),
    st.integers(0, 3),
)
def test_a_detector_rebuilt_at_every_step_acts_as_one_that_was_not(levels, longest, change, seed):
    figures = [figure for number, (level, count) in enumerate(levels) for figure in noisy(level, count, seed + number)]
    options = {"longest": longest, "change": change, "delta": 0.05}
    one, other = [], []
    whole = DriftDetector(lambda state: one.append(state.step), lambda state: state.batch, **options)
    cut = DriftDetector(lambda state: other.append(state.step), lambda state: state.batch, **options)
    for step, figure in enumerate(figures, 1):
        for watch in (whole, cut):
            for _ in watch.on_batch(State(step=step, batch=figure)):
                pass
        cut = rebuilt(cut, **options)
        assert len(whole.state_dict()["figures"]) < longest
    assert one == other
    assert whole.state_dict()["changes"] == cut.state_dict()["changes"] == len(one)
    assert whole.state_dict()["figures"].tolist() == cut.state_dict()["figures"].tolist()
    adwins = [(watch._adwin.width, watch._adwin.total, watch._adwin.variance) for watch in (whole, cut)]
    assert adwins[0] == adwins[1]


def test_a_full_window_keeps_its_newer_half():
    figures = noisy(0.5, 250)
    assert watched(figures, longest=200)[0].state_dict()["figures"].tolist() == figures[100:]


def test_a_bounded_window_detects_changes_too():
    (step,) = watched(noisy(0.2, 950) + noisy(0.9, 50), longest=100)[2]
    assert 950 < step <= 990


@needs_draws_again
def test_a_resumed_run_detects_raises_and_restores_at_the_same_steps(tmp_path):
    kind = LEARNING_ONLINE["drift"]
    runner = kind.make(tmp_path / "whole")
    rates = []
    updater = runner[ParameterUpdater]
    state = runner.insert_before(
        ParameterUpdater, Observer(on_batch_begin=lambda state: rates.append(updater.optimizer.get_lr()))
    ).run(steps=kind.steps)
    raised = [step for step, rate in enumerate(rates) if rate == 0.08]
    assert raised == list(range(raised[0], raised[0] + 6))
    assert raised[0] == state.reported["drift_detector.changes"] > CHANGE
    assert_resumes_exactly(kind.make, tmp_path / "cut", steps=kind.steps, cuts=[CHANGE + 1, raised[0], raised[3]])


def test_its_checkpoint_has_only_an_array_and_a_number(tmp_path):
    network, watch = toy_network(), DriftDetector(lambda state: None, lambda state: 0.5)
    Runner(Saver(tmp_path), DataProvider(toy_examples(12), 4), watch, *learning(network)).run(passes=1)
    saved = checkpoint.newest(tmp_path).items["drift_detector"]
    assert {**saved, "figures": saved["figures"].tolist()} == {"figures": [0.5] * 3, "changes": 0}


# -- actions -----------------------------------------------------------------------------------------------------------


def test_it_may_request_a_checkpoint_before_the_next_batch(tmp_path):
    network, mailbox, saver = toy_network(), Mailbox(), Saver(tmp_path, every=1000, keep_last=9)
    figures = noisy(0.1, 50) + noisy(0.9, 30)
    watch = DriftDetector(lambda state: mailbox.post(saver.save), lambda state: figures[state.step - 1])
    data = DataProvider(toy_examples(160), 2)
    state = Runner(saver, data, mailbox, watch, *learning(network)).run(passes=1)
    assert checkpoint.steps_in(tmp_path) == [state.reported["drift_detector.changes"], 80]


def raising(rate, begin_at, times=5.0, steps=3, on_batch_begin=None):
    """Return the rate of every batch of a run in which it is raised on the way out of some."""
    network, rates = toy_network(), []
    updater, machine = learning(network, rate)
    boost = LearningRateBoost(updater, times, steps)
    act = Observer(on_batch_end=lambda state: boost.begin(state) if state.step in begin_at else None)
    note = Observer(on_batch_begin=lambda state: rates.append(updater.optimizer.get_lr()))
    first = Observer(on_batch_begin=on_batch_begin)
    Runner(DataProvider(toy_examples(10), 1), first, act, boost, note, updater, machine).run(passes=1)
    return pytest.approx(rates)


@pytest.mark.parametrize(
    ("settings", "rates"),
    [
        pytest.param({"begin_at": [2]}, [0.01] * 2 + [0.05] * 3 + [0.01] * 5, id="once"),
        pytest.param({"begin_at": [2, 4]}, [0.01] * 2 + [0.05] * 5 + [0.01] * 3, id="again while it is raised"),
        pytest.param(
            {"begin_at": [1, 6], "steps": 2},
            [0.01] + [0.05] * 2 + [0.01] * 3 + [0.05] * 2 + [0.01] * 2,
            id="again later",
        ),
        pytest.param({"rate": 0.1, "begin_at": [1], "times": 0.5, "steps": 1}, [0.1, 0.05] + [0.1] * 8, id="lowered"),
        pytest.param(
            {"rate": schedules.linear_warmup_and_decay(0.1, total_steps=10, warmup_ratio=0), "begin_at": [2]},
            [0.1 * (10 - step) / 10 * (5 if 2 <= step < 5 else 1) for step in range(10)],
            id="the peak of a schedule",
        ),
    ],
)
def test_the_rate_is_multiplied_for_some_steps_and_restored(settings, rates):
    assert raising(**{"rate": 0.01, **settings}) == rates


def test_a_rate_that_is_set_otherwise_in_the_meantime_is_kept():
    def set_rate(state):
        if state.step == 3:
            state.runner[ParameterUpdater].set_learning_rate(0.02)

    assert raising(0.01, begin_at=[2], on_batch_begin=set_rate) == [0.01] * 2 + [0.05] + [0.02] * 7


def test_a_second_run_of_the_items_starts_with_the_usual_rate():
    updater, machine = learning(toy_network(), 0.01)
    boost = LearningRateBoost(updater, 5, 100)
    act = Observer(on_batch_end=lambda state: boost.begin(state) if state.step == 1 else None)
    runner = Runner(DataProvider(toy_examples(4), 1), act, boost, updater, machine)
    runner.run(passes=1)
    runner.run(passes=1)
    assert updater.optimizer.get_lr() == pytest.approx(0.25), "raised in both runs, and never restored"


# -- errors ------------------------------------------------------------------------------------------------------------


async def coroutine(state): ...


@pytest.mark.parametrize(
    ("kind", "arguments", "options", "message"),
    [
        (DriftDetector, (3,), {}, "plain functions of the state, got 3"),
        (DriftDetector, (coroutine,), {}, "must be plain functions of the state"),
        (DriftDetector, (print, "loss"), {}, "plain functions of the state, got 'loss'"),
        (DriftDetector, (print,), {"delta": 0}, "delta must be between 0 and 1, got 0"),
        (DriftDetector, (print,), {"delta": 1.0}, r"between 0 and 1, got 1\.0"),
        (DriftDetector, (print,), {"change": "sideways"}, "got 'sideways'"),
        (DriftDetector, (print,), {"longest": 99}, "longest must be an integer >= 100, got 99"),
        (LearningRateBoost, (None,), {"times": 0}, "times must be .* got 0"),
        (LearningRateBoost, (None,), {"steps": 0}, "steps must be .* got 0"),
        (LearningRateBoost, (None,), {"steps": 1.5}, "steps"),
    ],
)
def test_wrong_arguments_are_refused(kind, arguments, options, message):
    with pytest.raises(CompositionError, match=message):
        kind(*arguments, **options)


def test_without_river_the_error_names_the_extra(monkeypatch):
    for name in [each for each in sys.modules if each.partition(".")[0] == "river"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "river", None)
    with pytest.raises(OnionError, match=r"needs the library river: pip install 'onion-paddle\[drift\]'"):
        DriftDetector(print)


def test_an_updater_of_another_runner_is_refused():
    network = toy_network()
    (one, machine), (other, _) = learning(network), learning(network)
    with pytest.raises(
        CompositionError, match="learning_rate_boost raises the rate of an updater that is not in this runner"
    ):
        Runner(DataProvider(toy_examples(4)), LearningRateBoost(other), one, machine)


def test_a_schedule_that_sets_the_rate_by_itself_is_refused():
    updater, machine = learning(toy_network(), paddle.optimizer.lr.CosineAnnealingDecay(0.1, 10))
    with pytest.raises(CompositionError, match=r"sets the learning rate by itself; use one of onion\.schedules"):
        Runner(DataProvider(toy_examples(4)), LearningRateBoost(updater), updater, machine)
