"""Repeat: the inside, several times a batch."""

import numpy as np
import pytest

from onion import CompositionError, Repeat, Runner
from onion.testing import Batches, Recorder, toy_network
from tests.items.learning import examples, learning
from tests.toys import bits


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_inside_runs_n_times_and_the_batch_counts_once(n):
    outer, inner = Recorder("outer"), Recorder("inner")
    state = Runner(Batches(3), outer, Repeat(n), inner).run(passes=2)
    assert state.step == 6
    assert inner.trace.count("inner.on_batch:out") == 6 * n
    assert outer.trace.count("outer.on_batch:out") == 6
    assert inner.trace.count("inner.on_pass:in") == 2


def test_outside_an_updater_it_makes_n_updates_of_a_batch():
    def trained(*rings, batches):
        network = toy_network()
        Runner(Batches(batches), *rings, *learning(network, optimizer="Adam")).run(passes=1)
        return bits(network)

    batches = [{"x": np.ones((2, 8), "float32"), "y": np.full((2, 1), i, "float32")} for i in range(2)]
    assert trained(Repeat(3), batches=batches) == trained(batches=[each for each in batches for _ in range(3)])


def test_inside_an_updater_gradients_add_up():
    def moved(*rings):
        network = toy_network()
        before = network.linear.weight.numpy().copy()
        updater, machine = learning(network, rate=0.125)
        Runner(examples(4), updater, *rings, machine).run(passes=1)
        return network.linear.weight.numpy() - before

    np.testing.assert_allclose(moved(Repeat(2)), 2 * moved(), rtol=1e-5)


def test_in_a_nested_runner_it_repeats_that_runner_alone():
    trace = []
    critic, generator = Recorder("critic", trace), Recorder("generator", trace)
    assert Runner(Batches(2), Runner(Repeat(3), critic), Runner(generator)).run(passes=1).step == 2
    assert trace.count("critic.on_batch:out") == 6
    assert trace.count("generator.on_batch:out") == 2


@pytest.mark.parametrize("n", [0, -1, True, 1.5, "3", None])
def test_what_is_no_number_of_times_is_refused(n):
    with pytest.raises(CompositionError, match="must be an integer >= 1"):
        Repeat(n)
