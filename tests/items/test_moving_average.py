"""MovingAverage: the formula at every update, a network of its own, its parameters lent to the trained one."""

from contextlib import nullcontext

import numpy as np
import paddle
import pytest

from onion import (
    CompositionError,
    Forward,
    GradientMachine,
    MovingAverage,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    SkipIf,
    UseAverage,
)
from onion.models.encoder import Encoder
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from onion.tasks.networks.classifier import Classifier
from onion.testing import Batches, Failing, PlannedError, toy_network
from tests.abilities import needs_bfloat16
from tests.items.learning import assert_refused, check_close, examples, learning, updater
from tests.rings import Retry, Watch
from tests.tasks.helpers import tiny_encoder
from tests.toys import bits

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track")  # Paddle's BatchNorm


class WithBuffers(paddle.nn.Layer):
    """A network with BatchNorm's statistics, a counter, and one weight in two places."""

    def __init__(self, seed=3):
        super().__init__()
        paddle.seed(seed)
        self.first, self.second = paddle.nn.Linear(8, 8), paddle.nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.norm = paddle.nn.BatchNorm1D(8)
        self.head = paddle.nn.Linear(8, 1)
        self.register_buffer("count", paddle.to_tensor([0], dtype="int64"))

    def forward(self, batch):
        if self.training:
            self.count.set_value(self.count + 1)
        return self.head(self.norm(self.second(self.first(batch["x"]))))

    def loss(self, outputs, batch):
        return paddle.nn.functional.mse_loss(outputs, batch["y"])


def training(network, *rings):
    return Runner(examples(), *rings, *learning(network, optimizer="Adam"))


def averaged(network, passes=1, **settings):
    """Train; return the average."""
    training(network, smooth := MovingAverage(network, **settings)).run(passes=passes)
    return smooth


def arrays(network):
    """The values in 32 bits, or as the integers that they are."""
    return {
        path: tensor.astype("float32" if tensor.is_floating_point() else tensor.dtype).numpy().copy()
        for path, tensor in network.state_dict().items()
    }


class Formula(Watch):
    """Watch the parameters after every update, between the average and the updater, and average them."""

    def __init__(self, network):
        super().__init__(lambda state: arrays(network), "on_batch_end")
        self.first = arrays(network)

    def assert_followed_by(self, smooth):
        wanted = {path: value.astype("float64") for path, value in self.first.items()}
        for now in self.seen:
            for path, value in now.items():
                share = 1 - smooth.decay if value.dtype.kind == "f" else 1
                wanted[path] += share * (value - wanted[path])
        check_close(arrays(smooth.average), wanted, rtol=1e-5, atol=1e-7)


# -- the average -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("make", [toy_network, WithBuffers])
def test_parameters_and_statistics_follow_the_formula_and_counters_are_copied(make, decay):
    network = make()
    smooth, formula = MovingAverage(network, decay), Formula(network)
    training(network, smooth, formula).run(passes=2)
    assert len(formula.seen) == 8
    formula.assert_followed_by(smooth)


def test_training_is_the_same_with_and_without_it_and_no_random_number_is_drawn():
    one, other = toy_network(), toy_network()
    before = paddle.get_rng_state()[0].__getstate__()
    averaged(one, passes=2)
    assert paddle.get_rng_state()[0].__getstate__() == before
    training(other).run(passes=2)
    assert bits(one) == bits(other)


def test_the_average_is_a_network_of_its_own_that_takes_no_gradients():
    network = WithBuffers()
    smooth = averaged(network)
    assert smooth.decay == 0.999
    assert type(smooth.average) is WithBuffers
    assert smooth.average.first.weight is smooth.average.second.weight
    assert (smooth.average.training, network.training) == (False, True)
    assert all(parameter.stop_gradient for parameter in smooth.average.parameters())
    assert not network.head.weight.stop_gradient
    assert bits(smooth.average) != bits(network)
    names = [{parameter.name for parameter in each.parameters()} for each in (network, smooth.average)]
    assert names[0].isdisjoint(names[1])


def test_it_begins_at_the_parameters_of_the_runs_start_and_not_of_its_making():
    network = toy_network()
    smooth = MovingAverage(network, 0.9)
    network.linear.weight.set_value(paddle.full([8, 1], 7.0))
    formula = Formula(network)
    training(network, smooth, formula).run(steps=2)
    formula.assert_followed_by(smooth)


def test_a_second_run_continues_the_average():
    network = toy_network()
    smooth = MovingAverage(network, 0.9)
    runner = training(network, smooth)
    for _ in range(2):
        runner.run(passes=1)
    assert bits(smooth.average) == bits(averaged(toy_network(), passes=2, decay=0.9).average)


@needs_bfloat16
def test_an_average_made_before_the_network_is_cast_keeps_32_bits_and_follows():
    class Nudge(RunnerItem):
        computes_gradients = True

        def on_batch(self, state):
            nudged = network.linear.weight.astype("float32") + 1  # the CPU has no sum of 16 bits
            network.linear.weight.set_value(nudged.astype("bfloat16"))

    network = toy_network()
    smooth = MovingAverage(network, 0.5)
    network.bfloat16()
    formula = Formula(network)
    Runner(Batches(3), smooth, formula, updater(network, rate=0.0), Nudge()).run(passes=1)
    assert smooth.average.linear.weight.dtype == paddle.float32
    formula.assert_followed_by(smooth)
    with smooth.applied():
        assert network.linear.weight.dtype == paddle.bfloat16


@needs_bfloat16
def test_a_network_of_16_bits_is_refused():
    with pytest.raises(CompositionError, match=r"linear\.weight has 16 bits, too few for an average.*while.*32"):
        MovingAverage(toy_network().bfloat16())


@pytest.mark.parametrize("inside", [False, True])
def test_a_skipped_batch_does_not_move_it(inside):
    network = toy_network()
    rings = [MovingAverage(network, 0.5), SkipIf(lambda state: state.batch_id in (1, 2))]
    formula = Formula(network)
    state = training(network, *(rings if inside else reversed(rings)), formula).run(passes=1)
    assert state.step == len(formula.seen) == 2
    formula.assert_followed_by(rings[0])


RINGS = {
    "retried inside": lambda smooth, fails, parts: [smooth, Retry(), fails, *parts],
    "retried outside": lambda smooth, fails, parts: [Retry(), smooth, fails, *parts],
    "in a nested runner": lambda smooth, fails, parts: [Runner(smooth, *parts)],  # where no batch counts yet
}


@pytest.mark.parametrize("rings", RINGS)
def test_each_batch_that_counts_moves_it_once(rings):
    network = toy_network()
    smooth, fails = MovingAverage(network, 0.5), Failing("on_batch", "in", step=2, times=1)
    Runner(examples(), *RINGS[rings](smooth, fails, learning(network, optimizer="Adam"))).run(passes=1)
    assert bits(smooth.average) == bits(averaged(toy_network(), decay=0.5).average)


def test_the_averages_are_saved_by_the_networks_paths():
    network, fresh = WithBuffers(), WithBuffers(9)
    smooth = averaged(network, decay=0.7)
    assert smooth.state_dict().keys() == GradientMachine(network).state_dict().keys()
    GradientMachine(fresh).load_state_dict({path: tensor.numpy() for path, tensor in smooth.state_dict().items()})
    assert bits(fresh) == bits(smooth.average)


# -- lending -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [None, PlannedError, KeyboardInterrupt])
def test_applied_lends_the_averages_and_gives_back_the_very_bits(error):
    network = WithBuffers()
    smooth = averaged(network, decay=0.7)
    own, lent, tensors = bits(network), bits(smooth.average), list(map(id, network.parameters()))
    with pytest.raises(error) if error else nullcontext(), smooth.applied():
        assert bits(network) == lent != own
        if error:
            raise error
    assert bits(network) == own
    assert bits(smooth.average) == lent
    assert list(map(id, network.parameters())) == tensors


def test_applied_gives_back_after_an_error_in_the_middle_of_lending(monkeypatch):
    class Unreadable:
        def astype(self, dtype):
            raise PlannedError

    network = toy_network()
    smooth = averaged(network, decay=0.7)
    own = bits(network)
    monkeypatch.setattr(smooth, "_begin", lambda: None)
    smooth._pairs[-1] = (Unreadable(), smooth._pairs[-1][1])
    with pytest.raises(PlannedError), smooth.applied():
        pytest.fail("the body ran")
    assert bits(network) == own


def test_before_the_first_run_the_averages_are_the_networks_own_values():
    network = toy_network()
    smooth = MovingAverage(network)
    network.linear.weight.set_value(paddle.full([8, 1], 7.0))
    own = bits(network)
    with smooth.applied():
        assert bits(network) == own


def test_the_average_of_an_encoder_with_a_head_is_lent_and_run(tmp_path):
    network = Classifier(Encoder.from_pretrained(tiny_encoder(tmp_path)), 2)
    smooth, formula = MovingAverage(network, 0.9), Formula(network)
    ids = np.arange(5, 19).reshape(2, 7)
    batch = {"input_ids": ids, "token_type_ids": 0 * ids, "lengths": np.array([7, 5]), "labels": np.array([0, 1])}
    optimizer = fine_tuning_optimizer(network, 0.01, total_steps=3, layerwise_decay=0.8)
    parts = ParameterUpdater(optimizer), GradientMachine(network)
    Runner(Batches([batch] * 3), smooth, formula, *parts).run(passes=1)
    formula.assert_followed_by(smooth)
    lent = Runner(Batches([batch]), UseAverage(smooth), Forward(network)).run(passes=1).outputs
    direct = Runner(Batches([batch]), Forward(smooth.average)).run(passes=1).outputs
    np.testing.assert_array_equal(lent.numpy(), direct.numpy())


@pytest.mark.parametrize("decay", [-0.1, 1.0, 1.5, float("nan")])
def test_a_decay_out_of_range_is_refused(decay):
    with pytest.raises(CompositionError, match=r"decay must be in \[0, 1\), got"):
        MovingAverage(toy_network(), decay)


def test_a_wrong_place_is_refused_with_the_drawing():
    one, other = toy_network(), toy_network()
    said = "moving_average has no ParameterUpdater inside it; move it further out"
    assert_refused(said, *learning(one, MovingAverage(one)))
    said = "averages a network of which parameter_updater updates no parameter; give both the same"
    assert_refused(said, MovingAverage(one), *learning(other))
    said = "saver is inside data_provider, moving_average, which it has to save"
    assert_refused(said, MovingAverage(one), Saver("never"), *learning(one))
