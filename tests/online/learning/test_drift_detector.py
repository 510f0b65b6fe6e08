"""DriftDetector: what is a change and what is not, and what happens then; LearningRateBoost."""

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
    GradientMachine,
    Mailbox,
    Observer,
    OnionError,
    ParameterUpdater,
    Runner,
    Saver,
    SkipIf,
    schedules,
)
from onion.checkpointing import checkpoint
from onion.online.learning.drift_detector import DriftDetector, loss
from onion.online.learning.learning_rate_boost import LearningRateBoost
from onion.testing import Batches, assert_resumes_exactly, toy_examples, toy_network
from tests.abilities import needs_draws_again
from tests.onions.learning_online import CHANGE, LEARNING_ONLINE

LOW, HIGH = 0.1, 0.9


def noisy(level, count, seed=0):
    """Errors of batches around a level."""
    return np.clip(np.random.default_rng(seed).normal(level, 0.1, count), 0, 1).tolist()


def watched(figures, **options):
    """The watch, the state, and the steps at which it acted, over batches that are their figures."""
    acted = []
    watch = DriftDetector(lambda state: acted.append(state.step), lambda state: state.batch, **options)
    state = Runner(Batches(figures), watch).run(passes=1)
    return watch, state, acted


# -- noticing ----------------------------------------------------------------------------------------------------------


def test_a_figure_that_stays_as_it_is_is_no_change():
    _, state, acted = watched(noisy(0.5, 500))
    assert acted == []
    assert state.metrics == {}


def test_a_jump_is_noticed_soon_and_once():
    _, state, acted = watched(noisy(0.2, 200) + noisy(0.9, 100))
    (step,) = acted
    assert 200 < step <= 260  # versions of river differ a little
    assert state.metrics == {"drift_detector.changes": 1}
    assert state.reported["drift_detector.changes"] == step


def test_it_is_rivers_adwin_that_decides():
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


def test_what_is_no_number_is_passed_over():
    figures = noisy(0.2, 200) + noisy(0.6, 100)
    gaps = [each for figure in figures for each in (None, figure, float("nan"), float("inf"))]
    _, _, acted = watched(figures)
    _, _, with_gaps = watched(gaps)
    assert [(step - 2) // 4 + 1 for step in with_gaps] == acted


def test_figures_of_samples_tell_sooner_than_their_means():
    random = np.random.default_rng(1)
    batches = [(random.random(32) < (0.2 if step < 60 else 0.5)).astype(float) for step in range(120)]
    (by_sample,), by_mean = watched(batches)[2], watched([batch.mean() for batch in batches])[2]
    assert 60 < by_sample <= 66
    assert by_mean == [] or by_mean[0] > by_sample


def test_a_smaller_delta_waits_longer():
    figures = noisy(0.2, 200) + noisy(0.6, 200)
    (soon,), (late,) = watched(figures, delta=0.2)[2], watched(figures, delta=1e-9)[2]
    assert soon < late


def test_a_second_run_begins_anew():
    acted = []
    watch = DriftDetector(lambda state: acted.append(state.step), lambda state: state.batch)
    runner = Runner(Batches(noisy(0.2, 200) + noisy(0.9, 30)), watch)
    assert runner.run(passes=1).metrics == runner.run(passes=1).metrics == {"drift_detector.changes": 1}
    assert acted[0] == acted[1]


def test_the_loss_is_watched_by_default_and_a_skipped_batch_has_none():
    network, losses = toy_network(), []
    watch = DriftDetector(lambda state: None)
    look = Observer(on_batch_end=lambda state: losses.append(loss(state)))
    updater = ParameterUpdater(paddle.optimizer.SGD(0.01, parameters=network.parameters()))
    skip = SkipIf(lambda state: state.batch_id == 1)
    Runner(DataProvider(toy_examples(12), 4), watch, look, skip, updater, GradientMachine(network)).run(passes=1)
    assert losses[1] is None
    assert watch.state_dict()["figures"].tolist() == [losses[0], losses[2]]


# -- saved and bounded -------------------------------------------------------------------------------------------------


def rebuilt(watch, **options):
    """A watch that was made of another one's state, by way of what a checkpoint can hold."""
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
def test_saved_and_loaded_at_every_place_it_acts_as_one_that_was_not(levels, longest, change, seed):
    figures = [figure for number, (level, count) in enumerate(levels) for figure in noisy(level, count, seed + number)]
    options = {"longest": longest, "change": change, "delta": 0.05}
    one, other = [], []
    whole = DriftDetector(lambda state: one.append(state.step), lambda state: state.batch, **options)
    cut = DriftDetector(lambda state: other.append(state.step), lambda state: state.batch, **options)
    for step, figure in enumerate(figures, 1):
        for watch in (whole, cut):
            run_one(watch, figure, step)
        cut = rebuilt(cut, **options)
        assert len(whole.state_dict()["figures"]) < longest
    assert one == other
    assert whole.state_dict()["changes"] == cut.state_dict()["changes"] == len(one)
    assert whole.state_dict()["figures"].tolist() == cut.state_dict()["figures"].tolist()
    told = [(watch._adwin.width, watch._adwin.total, watch._adwin.variance) for watch in (whole, cut)]
    assert told[0] == told[1]


def run_one(watch, figure, step):
    """Let a watch see one batch."""
    from onion import State

    state = State(step=step, batch=figure)
    for _ in watch.on_batch(state):
        pass


def test_a_window_that_is_full_goes_on_with_its_newer_half():
    figures = noisy(0.5, 250)
    watch, _, _ = watched(figures, longest=200)
    assert watch.state_dict()["figures"].tolist() == figures[100:]


def test_a_change_is_noticed_with_a_bounded_window_too():
    _, _, acted = watched(noisy(0.2, 950) + noisy(0.9, 50), longest=100)
    assert len(acted) == 1
    assert 950 < acted[0] <= 990


@needs_draws_again
def test_a_resumed_run_notices_acts_and_lowers_at_the_same_steps(tmp_path):
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


def test_nothing_but_arrays_and_numbers_stands_in_its_checkpoint(tmp_path):
    network = toy_network()
    watch = DriftDetector(lambda state: None, lambda state: 0.5)
    updater = ParameterUpdater(paddle.optimizer.SGD(0.01, parameters=network.parameters()))
    Runner(Saver(tmp_path), DataProvider(toy_examples(12), 4), watch, updater, GradientMachine(network)).run(passes=1)
    saved = checkpoint.newest(tmp_path).items["drift_detector"]
    assert saved["figures"].tolist() == [0.5] * 3
    assert saved["changes"] == 0
    assert saved.keys() == {"figures", "changes"}


# -- acting ------------------------------------------------------------------------------------------------------------


def test_it_may_ask_for_a_save_before_the_next_batch(tmp_path):
    network, mailbox, saver = toy_network(), Mailbox(), Saver(tmp_path, every=1000, keep_last=9)
    figures = noisy(0.1, 50) + noisy(0.9, 30)
    watch = DriftDetector(lambda state: mailbox.post(saver.save), lambda state: figures[state.step - 1])
    updater = ParameterUpdater(paddle.optimizer.SGD(0.01, parameters=network.parameters()))
    data = DataProvider(toy_examples(160), 2)
    state = Runner(saver, data, mailbox, watch, updater, GradientMachine(network)).run(passes=1)
    assert checkpoint.steps_in(tmp_path) == [state.reported["drift_detector.changes"], 80]


def raising(rate, begin_at, times=5.0, steps=3, count=10, **options):
    """The rate of every batch of a run in which it is raised on the way out of some."""
    network, rates = toy_network(), []
    updater = ParameterUpdater(paddle.optimizer.SGD(rate, parameters=network.parameters()))
    raised = LearningRateBoost(updater, times, steps)
    act = Observer(on_batch_end=lambda state: raised.begin(state) if state.step in begin_at else None)
    note = Observer(on_batch_begin=lambda state: rates.append(updater.optimizer.get_lr()))
    hand = Observer(**options)
    data = DataProvider(toy_examples(count), 1)
    Runner(data, hand, act, raised, note, updater, GradientMachine(network)).run(passes=1)
    return pytest.approx(rates), updater


def test_the_rate_is_raised_for_so_many_steps_and_set_back():
    rates, _ = raising(0.01, begin_at=[2])
    assert rates == [0.01] * 2 + [0.05] * 3 + [0.01] * 5


def test_told_again_it_stays_raised_and_is_not_raised_twice():
    rates, _ = raising(0.01, begin_at=[2, 4])
    assert rates == [0.01] * 2 + [0.05] * 5 + [0.01] * 3


def test_it_can_be_raised_again_later():
    rates, _ = raising(0.01, begin_at=[1, 6], steps=2)
    assert rates == [0.01] + [0.05] * 2 + [0.01] * 3 + [0.05] * 2 + [0.01] * 2


def test_a_rate_that_somebody_else_sets_in_the_meantime_stays():
    updaters = []

    def by_hand(state):
        if state.step == 3:
            state.runner[ParameterUpdater].set_learning_rate(0.02)
        updaters.append(state.step)

    rates, _ = raising(0.01, begin_at=[2], on_batch_begin=by_hand)
    assert rates == [0.01] * 2 + [0.05] + [0.02] * 7


def test_of_a_schedule_the_peak_is_raised():
    rates, _ = raising(schedules.linear_warmup_and_decay(0.1, total_steps=10, warmup_ratio=0), begin_at=[2])
    usual = [0.1 * (10 - step) / 10 for step in range(10)]
    assert rates == [rate * (5 if 2 <= step < 5 else 1) for step, rate in enumerate(usual)]


def test_lowering_the_rate_works_the_same_way():
    rates, _ = raising(0.1, begin_at=[1], times=0.5, steps=1)
    assert rates == [0.1, 0.05] + [0.1] * 8


def test_a_second_run_of_the_items_begins_unraised():
    network = toy_network()
    updater = ParameterUpdater(paddle.optimizer.SGD(0.01, parameters=network.parameters()))
    raised = LearningRateBoost(updater, 5, 100)
    act = Observer(on_batch_end=lambda state: raised.begin(state) if state.step == 1 else None)
    runner = Runner(DataProvider(toy_examples(4), 1), act, raised, updater, GradientMachine(network))
    runner.run(passes=1)
    runner.run(passes=1)
    assert updater.optimizer.get_lr() == pytest.approx(0.25), "it was raised in either run, and there is no way back"


# -- refused -----------------------------------------------------------------------------------------------------------


async def coroutine(state): ...


@pytest.mark.parametrize(
    ("arguments", "options", "told"),
    [
        ((3,), {}, "plain functions of the state, got 3"),
        ((coroutine,), {}, "must be plain functions of the state"),
        ((print, "loss"), {}, "plain functions of the state, got 'loss'"),
        ((print,), {"delta": 0}, "delta must be between 0 and 1, got 0"),
        ((print,), {"delta": 1.0}, r"between 0 and 1, got 1\.0"),
        ((print,), {"change": "sideways"}, "got 'sideways'"),
        ((print,), {"longest": 99}, "longest must be an integer >= 100, got 99"),
    ],
)
def test_wrong_arguments_are_refused(arguments, options, told):
    with pytest.raises(CompositionError, match=told):
        DriftDetector(*arguments, **options)


def test_without_river_it_says_what_to_install(monkeypatch):
    for name in [each for each in sys.modules if each.partition(".")[0] == "river"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "river", None)
    with pytest.raises(OnionError, match=r"needs the library river: pip install 'onion-paddle\[drift\]'"):
        DriftDetector(print)


@pytest.mark.parametrize(
    ("options", "told"),
    [({"times": 0}, "times must be .* got 0"), ({"steps": 0}, "steps must be .* got 0"), ({"steps": 1.5}, "steps")],
)
def test_wrong_arguments_of_a_raise_are_refused(options, told):
    with pytest.raises(CompositionError, match=told):
        LearningRateBoost(None, **options)


def test_an_updater_of_another_onion_is_refused():
    network = toy_network()
    one, other = (ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters())) for _ in range(2))
    with pytest.raises(
        CompositionError, match="learning_rate_boost raises the rate of an updater that is not in this runner"
    ):
        Runner(DataProvider(toy_examples(4)), LearningRateBoost(other), one, GradientMachine(network))


def test_a_schedule_that_sets_the_rate_by_itself_is_refused():
    network = toy_network()
    rate = paddle.optimizer.lr.CosineAnnealingDecay(0.1, 10)
    updater = ParameterUpdater(paddle.optimizer.SGD(rate, parameters=network.parameters()))
    with pytest.raises(CompositionError, match=r"sets the learning rate by itself; use one of onion\.schedules"):
        Runner(DataProvider(toy_examples(4)), LearningRateBoost(updater), updater, GradientMachine(network))
