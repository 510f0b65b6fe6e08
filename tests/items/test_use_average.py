"""UseAverage: a test of the averages; the trained network has its own values again whatever happens."""

import pytest

from onion import CompositionError, Evaluator, Forward, MovingAverage, Observer, Runner, Saver, Tester, UseAverage
from onion.checkpointing import checkpoint
from onion.engine.item import HOOKS
from onion.testing import Batches, Failing, toy_network
from tests.items.learning import Mse, examples, learning
from tests.rings import Forgive
from tests.toys import bits

pytestmark = pytest.mark.slow


class Onion:
    """A training with a test of the averages, and its parts."""

    def __init__(self, *test_items, outside=(), every=2):
        self.network = toy_network()
        self.smooth = MovingAverage(self.network, 0.5)
        use, forward = UseAverage(self.smooth), Forward(self.network)
        self.test = Runner(examples(8), Evaluator(Mse()), use, *test_items, forward)
        learns = learning(self.network, optimizer="Adam")
        self.runner = Runner(*outside, Tester(self.test, every=every), examples(16), self.smooth, *learns)

    def untested(self, **limits):
        """Run it without the test."""
        self.runner.without(Tester).run(**(limits or {"passes": 1}))
        return self

    @property
    def bits(self):
        return bits(self.network), bits(self.smooth.average)


def test_the_test_sees_the_averages_and_the_training_its_own_values():
    seen = []
    note = Observer(on_batch_begin=lambda state: seen.append(bits(onion.network)))
    onion = Onion(note, every=4)
    onion.runner.run(passes=1)
    assert seen == [bits(onion.smooth.average)] * 2
    assert bits(onion.network) != bits(onion.smooth.average)


STOP = Observer(on_batch_end=lambda state: state.stop("seen enough"))


@pytest.mark.parametrize("inside", [[], [Failing("on_batch")], [STOP]], ids=["", "which fails", "which is stopped"])
def test_a_test_does_not_change_the_training(inside):
    tested = Onion(*inside, outside=[Forgive()], every=1)
    tested.runner.run(passes=2)
    assert tested.bits == Onion().untested(passes=2).bits


@pytest.mark.parametrize("way", ["in", "out"])
@pytest.mark.parametrize("hook", HOOKS)
def test_a_failing_test_gives_the_own_values_back(hook, way):
    before, after = [], []
    keep = Forgive(call=lambda state: after.append(bits(onion.network)))
    note = Observer(on_batch_end=lambda state: before.append(bits(onion.network)))
    onion = Onion(Failing(hook, way), outside=[keep], every=1)
    onion.runner.insert_after(Tester, note).run(passes=1)
    assert len(after) == 4
    assert after == before


def test_an_interrupted_test_gives_the_own_values_back():
    def interrupt(state):
        raise KeyboardInterrupt

    onion = Onion(Observer(on_batch_begin=interrupt), every=2)
    with pytest.raises(KeyboardInterrupt):
        onion.runner.run(passes=1)
    assert bits(onion.network) == bits(Onion().untested(steps=2).network)


# -- checkpoints -------------------------------------------------------------------------------------------------------


def test_a_checkpoint_of_a_tested_step_holds_the_networks_own_values(tmp_path):
    onion = Onion(every=2)
    onion.runner.insert_before(Tester, Saver(tmp_path, every=2, keep_last=9)).run(steps=2)
    there = checkpoint.newest(tmp_path).items
    assert {name: array.tobytes() for name, array in there["gradient_machine"].items()} == bits(onion.network)
    assert {name: array.tobytes() for name, array in there["moving_average"].items()} == bits(onion.smooth.average)


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_in_a_training_onion_it_is_refused_with_the_drawing():
    network = toy_network()
    smooth = MovingAverage(network)
    with pytest.raises(CompositionError) as caught:
        Runner(examples(16), UseAverage(smooth), smooth, *learning(network))
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
