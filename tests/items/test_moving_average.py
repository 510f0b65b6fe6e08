"""MovingAverage: the formula at every update, a network of its own, resumed to the bit; a mean teacher."""

import numpy as np
import paddle
import pytest

from onion import (
    CheckpointError,
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
from onion.models.encoder import Encoder
from onion.tasks.classification import Classifier
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from onion.testing import Batches, Failing, PlannedError, toy_examples, toy_network
from tests.abilities import needs_bfloat16
from tests.tasks.helpers import tiny_encoder
from tests.toys import bits

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track")  # Paddle's BatchNorm


def updater(network, rate=0.05):
    return ParameterUpdater(paddle.optimizer.Adam(rate, parameters=network.parameters()))


def data(count=16):
    return DataProvider(toy_examples(count), 4, prefetch=0)


def training(network, smooth, *extra):
    return Runner(data(), smooth, *extra, updater(network), GradientMachine(network))


def arrays(network):
    return {name: tensor.numpy().copy() for name, tensor in network.state_dict().items()}


def watched(network, trail):
    """Note the parameters after every update; it stands between the average and the updater."""
    return Observer(on_batch_end=lambda state: trail.append(arrays(network)))


def by_formula(begin, trail, decay):
    average = {name: value.astype("float64") for name, value in begin.items()}
    for now in trail:
        for name in average:
            average[name] += (1 - decay) * (now[name] - average[name])
    return average


def check_close(network, wanted):
    for name, value in arrays(network).items():
        np.testing.assert_allclose(value, wanted[name], rtol=1e-5, atol=1e-7, err_msg=name)


# -- the average -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9, 0.999])
def test_it_follows_the_formula(decay):
    network, trail = toy_network(), []
    begin = arrays(network)
    smooth = MovingAverage(network, decay)
    training(network, smooth, watched(network, trail)).run(passes=2)
    assert len(trail) == 8
    check_close(smooth.average, by_formula(begin, trail, decay))


def test_the_default_decay():
    assert MovingAverage(toy_network()).decay == 0.999


def test_training_is_the_same_with_and_without_it():
    with_it, without = toy_network(), toy_network()
    runner = training(with_it, MovingAverage(with_it))
    runner.run(passes=2)
    Runner(data(), updater(without), GradientMachine(without)).run(passes=2)
    assert bits(with_it) == bits(without)


def test_it_draws_no_random_number():
    network = toy_network()
    before = paddle.get_rng_state()[0].__getstate__()
    training(network, MovingAverage(network)).run(passes=1)
    assert paddle.get_rng_state()[0].__getstate__() == before


def test_the_average_is_a_network_of_its_own_that_takes_no_gradients():
    network = toy_network()
    smooth = MovingAverage(network)
    training(network, smooth).run(passes=1)
    assert type(smooth.average) is type(network)
    assert not smooth.average.training
    assert network.training
    assert all(parameter.stop_gradient for parameter in smooth.average.parameters())
    assert not any(parameter.stop_gradient for parameter in network.parameters())
    assert bits(smooth.average) != bits(network)
    names = {parameter.name for parameter in network.parameters()}
    assert names.isdisjoint(parameter.name for parameter in smooth.average.parameters())


def test_it_begins_at_the_parameters_of_the_runs_start_and_not_of_its_making():
    network, trail = toy_network(), []
    smooth = MovingAverage(network, 0.9)
    network.linear.weight.set_value(paddle.full_like(network.linear.weight, 7.0))
    begin = arrays(network)
    training(network, smooth, watched(network, trail)).run(steps=2)
    check_close(smooth.average, by_formula(begin, trail, 0.9))


def test_a_second_run_goes_on():
    once, twice = toy_network(), toy_network()
    whole, halves = MovingAverage(once, 0.9), MovingAverage(twice, 0.9)
    training(once, whole).run(passes=2)
    runner = training(twice, halves)
    runner.run(passes=1)
    runner.run(passes=1)
    assert bits(halves.average) == bits(whole.average)


def test_two_averages_of_one_network_stand_side_by_side():
    network, trail = toy_network(), []
    begin = arrays(network)
    fast, slow = MovingAverage(network, 0.5), MovingAverage(network, 0.9)
    Runner(data(), fast, slow, watched(network, trail), updater(network), GradientMachine(network)).run(passes=1)
    check_close(fast.average, by_formula(begin, trail, 0.5))
    check_close(slow.average, by_formula(begin, trail, 0.9))


# -- buffers, shared and narrow tensors --------------------------------------------------------------------------------


class WithBuffers(paddle.nn.Layer):
    """A network with BatchNorm's statistics, a counter, and one weight in two places."""

    def __init__(self, seed=3):
        super().__init__()
        paddle.seed(seed)
        self.first = paddle.nn.Linear(8, 8)
        self.second = paddle.nn.Linear(8, 8)
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


def test_statistics_are_averaged_counters_copied_and_a_shared_weight_moves_once():
    network, trail = WithBuffers(), []
    begin = arrays(network)
    smooth = MovingAverage(network, 0.8)
    training(network, smooth, watched(network, trail)).run(passes=1)
    wanted = by_formula(begin, trail, 0.8)
    wanted["count"] = np.array([4])
    check_close(smooth.average, wanted)
    assert smooth.average.first.weight is smooth.average.second.weight
    assert not np.allclose(wanted["norm._mean"], arrays(network)["norm._mean"])


@needs_bfloat16
def test_an_average_made_before_the_network_is_cast_keeps_32_bits_and_follows():
    network = toy_network()
    smooth = MovingAverage(network, 0.5)
    network.bfloat16()
    begin = arrays_32(network)

    class Nudge(RunnerItem):
        computes_gradients = True

        def on_batch(self, state):
            nudged = network.linear.weight.astype("float32") + 1  # the CPU has no sum of 16 bits
            network.linear.weight.set_value(nudged.astype("bfloat16"))

    trail = []
    look = Observer(on_batch_end=lambda state: trail.append(arrays_32(network)))
    sgd = ParameterUpdater(paddle.optimizer.SGD(0.0, parameters=network.parameters()))
    Runner(Batches(3), smooth, look, sgd, Nudge()).run(passes=1)
    assert smooth.average.linear.weight.dtype == paddle.float32
    check_close(smooth.average, by_formula(begin, trail, 0.5))
    with smooth.applied():
        assert network.linear.weight.dtype == paddle.bfloat16


def arrays_32(network):
    return {name: tensor.astype("float32").numpy().copy() for name, tensor in network.state_dict().items()}


@needs_bfloat16
def test_a_network_of_16_bits_is_refused():
    network = toy_network()
    network.bfloat16()
    with pytest.raises(CompositionError, match=r"linear\.weight has 16 bits, too few for an average.*while.*32"):
        MovingAverage(network)


# -- batches that leave no trace ---------------------------------------------------------------------------------------


class SkipAt(RunnerItem):
    """Skip the inside of some batches."""

    def __init__(self, *places):
        self.places = places

    def on_batch(self, state):
        if state.batch_id not in self.places:
            yield


class Retry(RunnerItem):
    """Try again after a planned error."""

    def on_batch(self, state):
        try:
            yield
        except PlannedError:
            yield


@pytest.mark.parametrize("inside", [False, True])
def test_a_skipped_batch_does_not_move_it(inside):
    network, trail = toy_network(), []
    begin = arrays(network)
    smooth, skip = MovingAverage(network, 0.5), SkipAt(1, 2)
    rings = [smooth, skip] if inside else [skip, smooth]
    runner = Runner(data(), *rings, watched(network, trail), updater(network), GradientMachine(network))
    assert runner.run(passes=1).step == len(trail) == 2
    check_close(smooth.average, by_formula(begin, trail, 0.5))


@pytest.mark.parametrize("inside", [False, True])
def test_a_retried_batch_moves_it_once(inside):
    one, other = toy_network(), toy_network()
    plain, smooth = MovingAverage(one, 0.5), MovingAverage(other, 0.5)
    training(one, plain).run(passes=1)
    rings = [smooth, Retry()] if inside else [Retry(), smooth]
    fails = Failing("on_batch", "in", step=2, times=1)
    Runner(data(), *rings, fails, updater(other), GradientMachine(other)).run(passes=1)
    assert bits(smooth.average) == bits(plain.average)


def test_it_follows_in_a_nested_runner_too():
    """There a batch under way never counts yet."""
    one, other = toy_network(), toy_network()
    plain, nested = MovingAverage(one, 0.5), MovingAverage(other, 0.5)
    training(one, plain).run(passes=1)
    Runner(data(), Runner(nested, updater(other), GradientMachine(other))).run(passes=1)
    assert bits(nested.average) == bits(plain.average)


# -- resuming ----------------------------------------------------------------------------------------------------------


def saved(folder, seed=0):
    network = WithBuffers(seed)
    smooth = MovingAverage(network, 0.7)
    return Runner(Saver(folder, every=1), data(), smooth, updater(network), GradientMachine(network))


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_run_cut_after_any_step_goes_on_to_the_same_bits(cut, tmp_path):
    uncut = saved(tmp_path / "uncut")
    uncut.run(passes=2)
    saved(tmp_path / "cut").run(passes=2, steps=cut)
    resumed = saved(tmp_path / "cut", seed=5)
    resumed.run(passes=2)
    assert bits(resumed[MovingAverage].average) == bits(uncut[MovingAverage].average)
    assert bits(resumed[MovingAverage].network) == bits(uncut[MovingAverage].network)


def test_a_checkpoint_holds_the_averages_by_the_networks_paths(tmp_path):
    runner = saved(tmp_path)
    runner.run(passes=1)
    items = checkpoint.newest(tmp_path).items
    assert items["moving_average"].keys() == items["gradient_machine"].keys()
    fresh = WithBuffers(9)
    GradientMachine(fresh).load_state_dict(items["moving_average"])
    assert bits(fresh) == bits(runner[MovingAverage].average)


def test_the_averages_of_another_network_are_refused():
    with pytest.raises(CheckpointError, match=r"linear\.bias is missing"):
        MovingAverage(toy_network()).load_state_dict({"linear.weight": np.zeros((8, 1), "float32")})


# -- lending -----------------------------------------------------------------------------------------------------------


def test_applied_lends_the_averages_and_gives_back_the_very_bits():
    network = WithBuffers()
    smooth = MovingAverage(network, 0.7)
    training(network, smooth).run(passes=1)
    own, lent = bits(network), bits(smooth.average)
    tensors = list(map(id, network.parameters()))
    with smooth.applied():
        assert bits(network) == lent != own
    assert bits(network) == own
    assert bits(smooth.average) == lent
    assert list(map(id, network.parameters())) == tensors


@pytest.mark.parametrize("error", [PlannedError, KeyboardInterrupt])
def test_applied_gives_back_after_an_error(error):
    network = toy_network()
    smooth = MovingAverage(network, 0.7)
    training(network, smooth).run(passes=1)
    own = bits(network)
    with pytest.raises(error), smooth.applied():
        raise error
    assert bits(network) == own


def test_applied_gives_back_after_an_error_in_the_middle_of_lending(monkeypatch):
    network = toy_network()
    smooth = MovingAverage(network, 0.7)
    training(network, smooth).run(passes=1)
    own = bits(network)

    class Stuck:
        """An average that cannot be read."""

        def __init__(self, tensor):
            self.tensor = tensor

        def astype(self, dtype):
            raise PlannedError

    monkeypatch.setattr(smooth, "_begin", lambda: None)
    smooth._pairs[-1] = (Stuck(smooth._pairs[-1][0]), smooth._pairs[-1][1])
    with pytest.raises(PlannedError), smooth.applied():
        pytest.fail("the body ran")
    assert bits(network) == own


def test_before_the_first_run_the_averages_are_the_networks_own_values():
    network = toy_network()
    smooth = MovingAverage(network)
    network.linear.weight.set_value(paddle.full_like(network.linear.weight, 7.0))
    own = bits(network)
    with smooth.applied():
        assert bits(network) == own


# -- what it is for ----------------------------------------------------------------------------------------------------


class Mse:
    def reset(self):
        self.losses = []

    def update(self, outputs, batch):
        self.losses.append(float(((outputs.numpy() - batch["y"]) ** 2).mean()))

    def result(self):
        return {"mse": float(np.mean(self.losses))}


def test_a_tester_runs_the_average_as_a_network():
    network = toy_network()
    smooth = MovingAverage(network, 0.5)
    tests = [
        Tester(Runner(data(8), Evaluator(Mse()), Forward(each)), name=name)
        for name, each in [("own", network), ("average", smooth.average)]
    ]
    state = Runner(*tests, data(), smooth, updater(network), GradientMachine(network)).run(passes=1)
    average = Runner(data(8), Evaluator(Mse()), Forward(smooth.average)).run(passes=1)
    assert state.metrics["average.mse"] == average.metrics["mse"] != state.metrics["own.mse"]


def test_a_mean_teacher_is_the_average_called_in_the_students_cost():
    """Tarvainen and Valpola 2017: the student is to agree with the average of itself."""
    student = toy_network()
    teacher = MovingAverage(student, 0.9)

    def loss(outputs, batch):
        consistency = paddle.nn.functional.mse_loss(outputs, teacher.average(batch))
        return student.loss(outputs, batch) + 0.1 * consistency

    begin, trail = arrays(student), []
    machine = GradientMachine(student, loss=loss)
    state = Runner(data(), teacher, watched(student, trail), updater(student), machine).run(passes=3)
    assert float(state.loss) < 20
    assert all(parameter.grad is None for parameter in teacher.average.parameters())
    check_close(teacher.average, by_formula(begin, trail, 0.9))


def test_the_average_of_an_encoder_with_a_head(tmp_path):
    network = Classifier(Encoder.from_pretrained(tiny_encoder(tmp_path)), 2)
    smooth, trail = MovingAverage(network, 0.9), []
    ids = np.arange(5, 19).reshape(2, 7)
    given = {"input_ids": ids, "token_type_ids": 0 * ids, "lengths": np.array([7, 5]), "labels": np.array([0, 1])}
    begin = arrays(network)
    optimizer = fine_tuning_optimizer(network, 0.01, total_steps=3, layerwise_decay=0.8)
    Runner(
        Batches([given] * 3), smooth, watched(network, trail), ParameterUpdater(optimizer), GradientMachine(network)
    ).run(passes=1)
    check_close(smooth.average, by_formula(begin, trail, 0.9))
    lent = Runner(Batches([given]), UseAverage(smooth), Forward(network)).run(passes=1).outputs
    direct = Runner(Batches([given]), Forward(smooth.average)).run(passes=1).outputs
    np.testing.assert_array_equal(lent.numpy(), direct.numpy())


# -- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decay", [-0.1, 1.0, 1.5, float("nan")])
def test_a_decay_out_of_range_is_refused(decay):
    with pytest.raises(CompositionError, match=r"decay must be in \[0, 1\), got"):
        MovingAverage(toy_network(), decay)


def test_standing_inside_the_updater_is_refused_with_the_drawing():
    network = toy_network()
    with pytest.raises(CompositionError) as caught:
        Runner(data(), updater(network), MovingAverage(network), GradientMachine(network))
    assert "moving_average has no ParameterUpdater inside it; move it further out" in str(caught.value)
    assert "╭ parameter_updater" in str(caught.value)


def test_an_updater_of_another_network_is_refused_with_the_drawing():
    one, other = toy_network(), toy_network()
    with pytest.raises(CompositionError) as caught:
        Runner(data(), MovingAverage(one), updater(other), GradientMachine(other))
    assert "averages a network of which parameter_updater updates no parameter; give both the same" in str(caught.value)
    assert "╭ moving_average" in str(caught.value)


def test_a_saver_inside_it_is_refused(tmp_path):
    network = toy_network()
    with pytest.raises(CompositionError, match="saver is inside moving_average, which it has to save"):
        Runner(MovingAverage(network), Saver(tmp_path), data(), updater(network), GradientMachine(network))
