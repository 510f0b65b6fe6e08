"""The search for a learning rate: it finds one, leaves no trace of its trials, and goes on where it was."""

import importlib.util
import json
import subprocess
import sys

import paddle
import pytest

from onion import DataProvider, GradientMachine, Observer, ParameterUpdater, Runner, Saver
from onion.checkpointing import rng
from onion.testing import toy_examples
from tests.abilities import needs_draws_again
from tests.paths import ROOT
from tests.toys import Dropped

SCRIPT = ROOT / "examples" / "lr_search.py"
spec = importlib.util.spec_from_file_location("lr_search", SCRIPT)
lr_search = importlib.util.module_from_spec(spec)
sys.modules["lr_search"] = lr_search
spec.loader.exec_module(lr_search)


def training(network, *rings, rate=0.001):
    """Passes of five batches."""
    updater = ParameterUpdater(paddle.optimizer.Momentum(rate, parameters=network.parameters()))
    return Runner(*rings, DataProvider(toy_examples(20), 4, shuffle=True), updater, GradientMachine(network))


class Costs(Observer):
    def __init__(self):
        self.found = []
        super().__init__(on_batch_end=lambda state: self.found.append((state.step, float(state.loss))))


def run(*rings, passes=3, steps=None, rate=0.001):
    """The losses of a training, and all that is left of it."""
    paddle.seed(5)
    network, losses = Dropped(), Costs()
    runner = training(network, *rings, losses, rate=rate)
    paddle.seed(5)
    state = runner.run(passes=passes, steps=steps)
    values = {name: value.numpy().tobytes() for name, value in network.state_dict().items()}
    saved = runner[ParameterUpdater].state_dict()
    moments = {name: value.numpy().tobytes() for name, value in saved.items() if hasattr(value, "numpy")}
    end_rate = runner[ParameterUpdater].optimizer.get_lr()
    return losses.found, values, moments, end_rate, runner[DataProvider].state_dict(), rng.capture(), state.step


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


@needs_draws_again
@pytest.mark.parametrize("cut", [2, 3, 7])
def test_a_run_that_was_cut_goes_on_to_the_same_bits(tmp_path, cut):
    """Also at the very batch before which a search is due."""

    def searched(folder, **until):
        return run(Saver(folder, every=1), lr_search.RateSearch(training, every=3, steps=4), **until)

    losses, *whole = searched(tmp_path / "whole")
    searched(tmp_path / "cut", steps=cut)
    resumed, *rest = searched(tmp_path / "cut")
    assert resumed == losses[cut:]
    assert rest == whole


def test_it_runs_as_its_docstring_says():
    done = subprocess.run([sys.executable, "-W", "ignore", SCRIPT], capture_output=True, text=True, check=True)
    *rates, last = done.stdout.splitlines()
    assert [line.split(":")[0] for line in rates] == ["step 0", "step 40", "step 80", "step 120"]
    error = json.loads(last)["error"]
    assert error["search"] < 0.02 < 1 < error["first rate"]
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) <= 80
