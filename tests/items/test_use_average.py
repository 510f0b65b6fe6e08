"""UseAverage: a test of the averages; the trained network has its own values again whatever happens."""

import numpy as np
import paddle
import pytest

from onion import (
    CompositionError,
    DataProvider,
    Evaluator,
    Forward,
    GradientMachine,
    MovingAverage,
    Observer,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    Tester,
    UseAverage,
)
from onion.checkpointing import checkpoint
from onion.testing import Batches, Failing, PlannedError, toy_examples, toy_network
from tests.toys import bits

pytestmark = pytest.mark.slow


class Mse:
    def reset(self):
        self.losses = []

    def update(self, outputs, batch):
        self.losses.append(float(((outputs.numpy() - batch["y"]) ** 2).mean()))

    def result(self):
        return {"mse": float(np.mean(self.losses))}


def data(count=16):
    return DataProvider(toy_examples(count), 4, prefetch=0)


class Onion:
    """A training with a test of the averages, and its parts."""

    def __init__(self, *test_items, outside=(), every=2):
        self.network = toy_network()
        self.smooth = MovingAverage(self.network, 0.5)
        optimizer = paddle.optimizer.Adam(0.05, parameters=self.network.parameters())
        evaluator, forward = Evaluator(Mse()), Forward(self.network)
        self.test = Runner(data(8), evaluator, UseAverage(self.smooth), *test_items, forward)
        self.tester = Tester(self.test, every=every)
        self.runner = Runner(
            *outside, self.tester, data(), self.smooth, ParameterUpdater(optimizer), GradientMachine(self.network)
        )


def test_the_test_sees_the_averages_and_the_training_its_own_values():
    seen = []
    note = Observer(on_batch_begin=lambda state: seen.append(bits(onion.network)))
    onion = Onion(note, every=4)
    onion.runner.run(passes=1)
    assert seen == [bits(onion.smooth.average)] * 2
    assert bits(onion.network) != bits(onion.smooth.average)


def test_its_figures_are_those_of_the_average_as_a_network():
    onion = Onion(every="pass")
    state = onion.runner.run(passes=1)
    direct = Runner(data(8), Evaluator(Mse()), Forward(onion.smooth.average)).run(passes=1)
    own = Runner(data(8), Evaluator(Mse()), Forward(onion.network)).run(passes=1)
    assert state.metrics["tester.mse"] == direct.metrics["mse"] != own.metrics["mse"]


def test_testing_does_not_change_the_training():
    tested, untested = Onion(every=1), Onion()
    tested.runner.run(passes=2)
    untested.runner.without(Tester).run(passes=2)
    assert bits(tested.network) == bits(untested.network)
    assert bits(tested.smooth.average) == bits(untested.smooth.average)


@pytest.mark.parametrize("way", ["in", "out"])
@pytest.mark.parametrize("hook", ["initialize", "on_pass", "on_batch"])
def test_a_failing_test_gives_the_own_values_back(hook, way):
    class Keep(RunnerItem):
        def on_batch(self, state):
            try:
                yield
            except PlannedError:
                after.append(bits(onion.network))

    before, after = [], []
    note = Observer(on_batch_end=lambda state: before.append(bits(onion.network)))
    onion = Onion(Failing(hook, way), outside=[Keep()], every=1)
    onion.runner.insert_after(Tester, note).run(passes=1)
    assert len(after) == 4
    assert after == before


def test_the_averages_follow_on_after_a_failed_test():
    class Swallow(RunnerItem):
        def on_batch(self, state):
            try:
                yield
            except PlannedError:
                state.report({"failed": 1.0})

    failed, untested = Onion(Failing("on_batch"), outside=[Swallow()], every=1), Onion()
    failed.runner.run(passes=1)
    untested.runner.without(Tester).run(passes=1)
    assert bits(failed.network) == bits(untested.network)
    assert bits(failed.smooth.average) == bits(untested.smooth.average)


def test_an_interrupted_test_gives_the_own_values_back():
    class Interrupt(RunnerItem):
        def on_batch(self, state):
            raise KeyboardInterrupt

    onion, alone = Onion(Interrupt(), every=2), Onion()
    with pytest.raises(KeyboardInterrupt):
        onion.runner.run(passes=1)
    alone.runner.without(Tester).run(steps=2)
    assert bits(onion.network) == bits(alone.network)


def test_a_stop_inside_the_test_gives_the_own_values_back():
    stopped = Onion(Observer(on_batch_end=lambda state: state.stop("seen enough")), every=1)
    untested = Onion()
    stopped.runner.run(passes=1)
    untested.runner.without(Tester).run(passes=1)
    assert bits(stopped.network) == bits(untested.network)


def test_two_testers_one_of_each_kind():
    onion = Onion(every=2)
    own = Tester(Runner(data(8), Evaluator(Mse()), Forward(onion.network)), every=2, name="own")
    state = onion.runner.insert_before(Tester, own).run(passes=1)
    assert state.metrics["own.mse"] != state.metrics["tester.mse"]


# -- checkpoints -------------------------------------------------------------------------------------------------------


def test_a_checkpoint_of_a_tested_step_holds_the_networks_own_values(tmp_path):
    onion = Onion(every=2)
    onion.runner.insert_before(Tester, Saver(tmp_path, every=2, keep_last=9)).run(steps=2)
    there = checkpoint.newest(tmp_path).items
    assert {name: array.tobytes() for name, array in there["gradient_machine"].items()} == bits(onion.network)
    assert {name: array.tobytes() for name, array in there["moving_average"].items()} == bits(onion.smooth.average)


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_run_cut_after_any_step_goes_on_to_the_same_bits(cut, tmp_path):
    def begun(folder):
        return Onion(outside=[Saver(folder, every=1, monitor="tester.mse", mode="min")])

    uncut = begun(tmp_path / "uncut")
    expected = uncut.runner.run(passes=2)
    begun(tmp_path / "cut").runner.run(passes=2, steps=cut)
    resumed = begun(tmp_path / "cut")
    state = resumed.runner.run(passes=2)
    assert state.metrics == expected.metrics
    assert bits(resumed.network) == bits(uncut.network)
    assert bits(resumed.smooth.average) == bits(uncut.smooth.average)


def test_a_run_killed_in_a_test_goes_on_to_the_same_bits(tmp_path):
    uncut = Onion(outside=[Saver(tmp_path / "uncut", every=1)], every=3)
    uncut.runner.run(passes=2)
    killed = Onion(Failing("on_batch"), outside=[Saver(tmp_path / "cut", every=1)], every=3)
    with pytest.raises(PlannedError):
        killed.runner.run(passes=2)
    resumed = Onion(outside=[Saver(tmp_path / "cut", every=1)], every=3)
    resumed.runner.run(passes=2)
    assert bits(resumed.network) == bits(uncut.network)
    assert bits(resumed.smooth.average) == bits(uncut.smooth.average)


# -- inference, and what is refused ------------------------------------------------------------------------------------


def test_an_inference_onion_with_averages_made_from_the_training_onion():
    onion = Onion()
    onion.runner.run(passes=1)
    outputs = []
    note = Observer(on_batch_end=lambda state: outputs.append(state.outputs.numpy()))
    inference = Runner(data(8), note, UseAverage(onion.smooth), Forward(onion.network))
    inference.run(passes=1)
    direct = Runner(data(8), note, Forward(onion.smooth.average))
    direct.run(passes=1)
    np.testing.assert_array_equal(outputs[:2], outputs[2:])


def test_in_a_training_onion_it_is_refused_with_the_drawing():
    network = toy_network()
    smooth = MovingAverage(network)
    optimizer = paddle.optimizer.SGD(0.1, parameters=network.parameters())
    with pytest.raises(CompositionError) as caught:
        Runner(data(), UseAverage(smooth), smooth, ParameterUpdater(optimizer), GradientMachine(network))
    assert "use_average would apply its averages to gradient_machine for the whole pass" in str(caught.value)
    assert "Tester(Runner(..., UseAverage(moving_average), Forward(network)))" in str(caught.value)
    assert "╭ use_average" in str(caught.value)


@pytest.mark.parametrize("saver_first", [False, True])
def test_a_saver_beside_it_is_refused(saver_first, tmp_path):
    network = toy_network()
    pair = [UseAverage(MovingAverage(network)), Saver(tmp_path)]
    if saver_first:
        pair.reverse()
    with pytest.raises(CompositionError, match="use_average would apply its averages to saver"):
        Runner(*pair, Batches(1), Forward(network))
