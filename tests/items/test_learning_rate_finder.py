"""LearningRateFinder: rates that grow, an end at divergence, a suggestion where the loss falls fastest."""

import math

import numpy as np
import paddle
import pytest

from onion import (
    CompositionError,
    DataProvider,
    GradientMachine,
    HookError,
    LearningRateFinder,
    ParameterUpdater,
    Runner,
    schedules,
)
from onion.testing import toy_examples, toy_network


def tried(finder, rate=0.1, **limits):
    paddle.seed(1)
    network = toy_network()
    updater = ParameterUpdater(paddle.optimizer.SGD(rate, parameters=network.parameters()))
    data = DataProvider(toy_examples(64), 8, shuffle=True, prefetch=0)
    return Runner(finder, data, updater, GradientMachine(network)).run(**limits)


def seen(losses, **settings):
    """Return a finder that has seen some losses."""
    finder = LearningRateFinder(1e-4, 1.0, len(losses), **settings)
    finder.load_state_dict({"losses": np.array(losses)})
    return finder


def test_the_rates_grow_exponentially_until_the_last():
    finder = LearningRateFinder(1e-6, 1e-4, 11)
    state = tried(finder)
    assert state.step == 11
    assert finder.rates == pytest.approx(list(np.logspace(-6, -4, 11)))
    assert (len(finder.losses), finder.diverged) == (11, False)


def test_the_run_stops_where_the_loss_diverges():
    finder = LearningRateFinder(1e-3, 1e3, 100)
    state = tried(finder)
    assert finder.diverged
    assert "diverged at the learning rate" in state.stopped
    assert state.step < 100
    # What fits this problem is below the rate from which on it diverges.
    assert 3e-3 < finder.suggestion < finder.rates[-1] / 3


def test_the_average_is_corrected_for_its_beginning():
    finder = seen([4.0, 2.0, 2.0], smoothing=0.5)
    assert finder.smoothed == pytest.approx([4, (0.25 * 4 + 0.5 * 2) / 0.75, (0.125 * 4 + 0.25 * 2 + 0.5 * 2) / 0.875])


FALL = [1.0] * 20 + [1 - 0.1 * place for place in range(9)] + [0.1] * 11


@pytest.mark.parametrize(
    ("losses", "place"),
    [
        (FALL, 24),  # the middle of the fall
        ([*FALL[:-5], 40, 0.1, 90, 0.2, 80], 24),  # not in the fall from a peak where it diverges
        ([*FALL[:-2], math.nan, math.nan], 24),
        ([1.0] * 40, None),
        (list(range(1, 41)), None),
        ([1.0] * 8, None),
    ],
)
def test_the_suggestion_is_where_the_losses_fall_fastest(losses, place):
    finder = seen([*losses], threshold=1e9)
    finder.steps = 40
    assert finder.suggestion == (None if place is None else pytest.approx(finder.rates[place]))


def test_a_schedule_that_changes_the_rate_is_refused():
    with pytest.raises(HookError, match=r"makes 0 of it; give the optimizer a constant rate"):
        tried(LearningRateFinder(), schedules.constant(0.1, warmup_steps=4))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"first": 0}, "0 < first < last, got 0 and 1.0"),
        ({"first": 1, "last": 1}, "0 < first < last"),
        ({"steps": 1}, "steps must be an integer >= 2, got 1"),
        ({"smoothing": 1}, "smoothing must be a number >= 0 and < 1"),
        ({"threshold": 1}, "threshold must be a number > 1"),
    ],
)
def test_arguments_out_of_range_are_refused(settings, told):
    with pytest.raises(CompositionError, match=told):
        LearningRateFinder(**settings)


def test_it_goes_outside_of_one_updater():
    network = toy_network()
    updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))
    with pytest.raises(CompositionError, match="of which there are 0; put it outside one"):
        Runner(DataProvider([1]), updater, LearningRateFinder(), GradientMachine(network))
