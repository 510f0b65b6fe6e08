"""The search for a learning rate: it finds one, and leaves no trace of its trials."""

import json
import subprocess
import sys

import paddle
import pytest

from onion import DataProvider, GradientMachine, Observer, ParameterUpdater, Runner
from onion.checkpointing import rng
from onion.testing import toy_examples
from tests.abilities import needs_draws_again
from tests.examples.in_process import EXAMPLES, load
from tests.toys import Dropped, bits

SCRIPT = EXAMPLES / "lr_search.py"
lr_search = load("lr_search")


def training(network, *rings, rate=0.001):
    """Passes of five batches."""
    updater = ParameterUpdater(paddle.optimizer.Momentum(rate, parameters=network.parameters()))
    return Runner(*rings, DataProvider(toy_examples(20), 4, shuffle=True), updater, GradientMachine(network))


def run(*rings, passes=3, steps=None, rate=0.001):
    """The losses of a training, and all that is left of it."""
    paddle.seed(5)
    network, losses = Dropped(), []
    note = Observer(on_batch_end=lambda state: losses.append((state.step, float(state.loss))))
    runner = training(network, *rings, note, rate=rate)
    paddle.seed(5)
    state = runner.run(passes=passes, steps=steps)
    saved = runner[ParameterUpdater].state_dict()
    moments = {name: value.numpy().tobytes() for name, value in saved.items() if hasattr(value, "numpy")}
    end_rate = runner[ParameterUpdater].optimizer.get_lr()
    return losses, bits(network), moments, end_rate, runner[DataProvider].state_dict(), rng.capture(), state.step


class Stays(lr_search.RateSearch):
    """Search, and keep the rate all the same."""

    def best(self, losses):
        self.tries = [*getattr(self, "tries", []), losses]
        return next(iter(losses))


@needs_draws_again
def test_a_search_that_keeps_the_rate_leaves_every_bit_as_it_is():
    search = Stays(training, every=3, steps=4)
    assert run(search) == run()
    assert len(search.tries) == 5
    for losses in search.tries:
        assert list(losses) == [0.001, 0.001 / 5, 0.001 * 5]
        assert len(set(losses.values())) == 3


@needs_draws_again
def test_a_trial_at_the_present_rate_costs_what_the_run_does():
    """On the way out of a batch, where its update is made, a trial is what the run itself does next."""

    class Late(Stays):
        def on_batch(self, state):
            yield
            if state.step == 3:
                self.mean = self.tried(0.001, state)

    search = Late(training, steps=4)
    losses = run(search)[0]
    assert search.mean == pytest.approx(sum(loss for step, loss in losses if 4 <= step <= 7) / 4, rel=1e-12)


def test_it_climbs_to_a_rate_that_helps_and_comes_down_from_one_that_does_not():
    low, high = lr_search.RateSearch(training, every=3), lr_search.RateSearch(training, every=3)
    losses, *_ = searched = run(low, rate=1e-5)
    assert losses[-1][1] < run(rate=1e-5)[0][-1][1] / 2
    assert searched[3] > 1e-4
    assert run(high, rate=50.0)[3] < 1


def test_rates_that_lose_their_way_are_not_chosen():
    best = lr_search.RateSearch(training).best
    nan = float("nan")
    assert best({1.0: nan, 2.0: 3.0, 4.0: 5.0}) == 2.0
    assert best({1.0: 3.0, 2.0: 3.0, 4.0: float("inf")}) == 1.0
    assert best({1.0: nan, 2.0: nan}) == 1.0


def test_it_runs_as_its_docstring_says():
    done = subprocess.run([sys.executable, "-W", "ignore", SCRIPT], capture_output=True, text=True, check=True)
    *rates, last = done.stdout.splitlines()
    assert [line.split(":")[0] for line in rates] == ["step 0", "step 40", "step 80", "step 120"]
    error = json.loads(last)["error"]
    assert error["search"] < 0.02 < 1 < error["first rate"]
