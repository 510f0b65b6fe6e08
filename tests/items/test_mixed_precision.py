"""MixedPrecision: scaled on the way in, unscaled on the way out, an overflow moves nothing; what Paddle is told.

Paddle has no 16-bit arithmetic on the CPU, where the loss scale works all the same. So it is tested in 32 bits, with
costs that overflow on demand; the tests that need a GPU say so.
"""

import logging
from contextlib import contextmanager

import numpy as np
import paddle
import pytest

from onion import (
    Accumulate,
    CheckpointError,
    CompositionError,
    DataProvider,
    Forward,
    GradientMachine,
    HookError,
    LossScale,
    MixedPrecision,
    NanGuard,
    Observer,
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    schedules,
)
from onion.items.mixed_precision import IN_32_BITS, unscale
from onion.testing import Batches, Failing, PlannedError, toy_examples, toy_network
from tests.abilities import needs_gpu
from tests.toys import bits

is_able = MixedPrecision._is_able


@pytest.fixture(autouse=True)
def in_32_bits(monkeypatch):
    """Let every device be as the CPU, so that all tests but those at the end are the same everywhere."""
    monkeypatch.setattr(MixedPrecision, "_is_able", lambda self: False)


@pytest.fixture
def in_16_bits(monkeypatch):
    monkeypatch.setattr(MixedPrecision, "_is_able", is_able)


OPTIMIZERS = {
    "sgd": lambda p: paddle.optimizer.SGD(0.05, parameters=p),
    "momentum": lambda p: paddle.optimizer.Momentum(0.05, parameters=p, weight_decay=0.01),
    "adam": lambda p: paddle.optimizer.Adam(0.05, parameters=p),
    "adamw clipped": lambda p: paddle.optimizer.AdamW(
        0.05, parameters=p, weight_decay=0.1, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.5)
    ),
    "adamw groups": lambda p: paddle.optimizer.AdamW(0.05, parameters=[{"params": [each]} for each in p]),
    "lamb": lambda p: paddle.optimizer.Lamb(0.05, parameters=p),
    "rmsprop": lambda p: paddle.optimizer.RMSProp(0.05, parameters=p, momentum=0.9),
}


def batches(*factors):
    """Return batches whose loss is multiplied by a factor; infinity makes it overflow."""
    random = np.random.default_rng(0)
    return [
        {
            "x": random.normal(size=(4, 8)).astype("float32"),
            "y": random.normal(size=(4, 1)).astype("float32"),
            "factor": np.array(factor, "float32"),
        }
        for factor in factors
    ]


class Factored(paddle.nn.Layer):
    """The toy network, its loss multiplied by a factor of the batch."""

    def __init__(self):
        super().__init__()
        self.body = toy_network()

    def forward(self, batch):
        return self.body(batch)

    def loss(self, outputs, batch):
        return self.body.loss(outputs, batch) * batch["factor"].mean()


INF = float("inf")
EXAMPLES = [{**example, "factor": np.ones(1, "float32")} for example in toy_examples(24)]


class Given(Batches):
    """Ready batches; a run that is resumed in mid-pass goes on where it was."""

    def on_pass(self, state):
        state.batches = iter(list(self.batches)[state.batch_id :])


class Onion:
    """A training on given batches, and its parts."""

    def __init__(self, given, *rings, optimizer="adamw clipped", outside=(), rate=None):
        self.network = Factored()
        parameters = self.network.parameters()
        adamw = paddle.optimizer.AdamW
        made = OPTIMIZERS[optimizer](parameters) if rate is None else adamw(rate, parameters=parameters)
        self.updater = ParameterUpdater(made)
        self.runner = Runner(*outside, Given(given), self.updater, *rings, GradientMachine(self.network))


def moments(onion):
    return {
        key: value if isinstance(value, str) else value.numpy().tobytes()
        for key, value in onion.updater.state_dict().items()
    }


# -- scaling -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_scale_that_is_a_power_of_two_changes_no_bit(optimizer):
    plain = Onion(batches(1, 1, 1, 1), optimizer=optimizer)
    scaled = Onion(batches(1, 1, 1, 1), MixedPrecision("float16", scale=LossScale(1024.0)), optimizer=optimizer)
    losses = [onion.runner.run(passes=2).loss for onion in (plain, scaled)]
    assert bits(scaled.network) == bits(plain.network)
    assert moments(scaled) == moments(plain)
    assert float(losses[0]) == float(losses[1])


def test_the_machine_works_on_the_scaled_loss_and_the_updater_on_plain_gradients():
    seen = {}

    def note(name):
        def look(state):
            seen[name] = (state.share, onion.network.body.linear.bias.grad.numpy().copy())

        return Observer(on_batch_end=look)

    precision = MixedPrecision("float16", scale=LossScale(8.0))
    onion = Onion(batches(1), note("outside"), precision, note("inside"))
    onion.runner.run(passes=1)
    assert seen["inside"][0] == 8
    assert seen["outside"][0] == 1
    np.testing.assert_array_equal(seen["inside"][1], 8 * seen["outside"][1])


def test_a_share_of_an_update_and_the_scale_multiply():
    class Half(RunnerItem):
        """Make the update of two halves."""

        def on_batch(self, state):
            share = state.share
            for _ in range(2):
                state.share = share * 0.5
                yield
            state.share = share

    plain = Onion(batches(1, 1))
    halves = Onion(batches(1, 1), MixedPrecision("float16", scale=LossScale(64.0)), Half())
    plain.runner.run(passes=1)
    assert halves.runner.run(passes=1).share == 1
    assert bits(halves.network) == bits(plain.network)


def test_the_scale_multiplies_a_share_that_is_set_outside():
    class Share(RunnerItem):
        def on_batch(self, state):
            state.share = 0.25
            yield
            shares.append(state.share)

    shares = []
    plain, scaled = Onion(batches(1), Share()), Onion(batches(1), Share(), MixedPrecision("float16"))
    plain.runner.run(passes=1)
    scaled.runner.run(passes=1)
    assert shares == [0.25, 0.25]
    assert bits(scaled.network) == bits(plain.network)


@pytest.mark.parametrize(
    "others",
    [lambda precision: [precision, Accumulate(3)], lambda precision: [NanGuard("skip"), precision, Accumulate(2)]],
)
def test_with_other_items_of_an_update_it_changes_no_bit(others):
    def trained(*rings):
        onion = Onion([], *rings, optimizer="sgd")
        onion.runner.replace(Given, DataProvider(EXAMPLES, 4, prefetch=0)).run(passes=2)
        return bits(onion.network)

    precision = MixedPrecision("float16", scale=LossScale(256.0))
    rings = others(precision)
    assert trained(*rings) == trained(*[ring for ring in rings if ring is not precision]) != bits(Factored())


def test_bfloat16_has_no_scale_unless_it_is_given_one_and_float16_has_one():
    assert MixedPrecision().dtype == "bfloat16"
    assert MixedPrecision().scale is None
    assert MixedPrecision().log_values() == {}
    assert MixedPrecision("float16").scale == LossScale()
    assert MixedPrecision("bfloat16", scale=LossScale(2.0)).log_values() == {"loss_scale": 2.0, "overflows": 0.0}


def test_two_items_do_not_share_a_scale():
    assert MixedPrecision("float16").scale is not MixedPrecision("float16").scale


# -- overflow ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [INF, -INF, float("nan")])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_overflow_moves_nothing_not_even_moments(optimizer, bad):
    without = Onion(batches(1, 1), optimizer=optimizer)
    given = batches(1, 1)
    given.insert(1, batches(bad)[0])
    overflowing = Onion(given, MixedPrecision("float16", scale=LossScale(8.0)), optimizer=optimizer)
    without.runner.run(passes=1)
    state = overflowing.runner.run(passes=1)
    assert bits(overflowing.network) == bits(without.network)
    assert moments(overflowing) == moments(without)
    assert state.step == 3  # the batch was run, and counts


def test_an_overflow_in_the_very_first_update_moves_nothing():
    onion = Onion(batches(INF), MixedPrecision("float16"))
    onion.runner.run(passes=1)
    assert bits(onion.network) == bits(Factored())


def test_the_scale_shrinks_at_an_overflow_and_grows_after_good_updates():
    scales = []
    precision = MixedPrecision("float16", scale=LossScale(16.0, growth_interval=2))
    note = Observer(on_batch_end=lambda state: scales.append(precision.log_values()["loss_scale"]))
    Onion(batches(1, INF, 1, 1, INF, INF, 1, 1), note, precision).runner.run(passes=1)
    assert scales == [16, 8, 8, 16, 8, 4, 4, 8]
    assert precision.log_values()["overflows"] == 3


def test_a_scale_that_is_too_large_itself_comes_down_until_updates_are_made():
    precision = MixedPrecision("float16", scale=LossScale(2.0**127, backoff_factor=2.0**-3))
    onion = Onion(batches(*[1] * 12), precision)
    onion.runner.run(passes=1)
    assert bits(onion.network) != bits(Factored())
    assert 0 < precision.overflows < 12
    assert precision.scale.value == 2.0 ** (127 - 3 * precision.overflows)


def test_an_overflow_steps_the_schedule():
    onion = Onion(batches(1, INF, 1), MixedPrecision("float16"), rate=schedules.noam(0.1, 8))
    onion.runner.run(passes=1)
    assert onion.updater.optimizer.get_lr() == pytest.approx(0.1 * 4 / 8)


def test_an_overflow_is_logged_with_its_step(caplog):
    with caplog.at_level(logging.INFO, "onion"):
        Onion(batches(1, INF), MixedPrecision("float16", scale=LossScale(8.0))).runner.run(passes=1)
    assert "mixed_precision: step 2 overflowed and was skipped; loss scale 4" in caplog.messages


def test_one_infinity_among_many_numbers_is_found_and_all_are_divided():
    gradients = [paddle.to_tensor([[2.0, 4.0]]), paddle.to_tensor([6.0], dtype="float64")]
    assert unscale(gradients, 2.0)
    assert [gradient.numpy().tolist() for gradient in gradients] == [[[1.0, 2.0]], [3.0]]
    assert not unscale([paddle.ones([100]), paddle.to_tensor([1.0, INF])], 2.0)
    assert not unscale([paddle.to_tensor([float("nan")], dtype="float64"), paddle.ones([3])], 2.0)


# -- batches that leave no trace ---------------------------------------------------------------------------------------


class Skip(RunnerItem):
    """Skip the inside of every batch."""

    def on_batch(self, state):
        return
        yield


class Retry(RunnerItem):
    """Try again after a planned error."""

    def on_batch(self, state):
        try:
            yield
        except PlannedError:
            yield


class FailsAfter(RunnerItem):
    """Run the inside and then fail, once."""

    failed = False

    def on_batch(self, state):
        yield
        if not self.failed:
            self.failed = True
            raise PlannedError


def test_a_skipped_batch_does_not_count_as_a_good_update():
    precision = MixedPrecision("float16", scale=LossScale(8.0, growth_interval=1))
    Onion(batches(1, 1), precision, Skip()).runner.run(passes=1)
    assert precision.state_dict() == {"scale": 8.0, "good": 0, "bad": 0, "overflows": 0}


@pytest.mark.parametrize("fails", [lambda: Failing("on_batch", times=1), FailsAfter])
def test_a_retried_batch_leaves_no_trace(fails):
    plain = Onion(batches(1, 1), MixedPrecision("float16", scale=LossScale(8.0)))
    retried = Onion(batches(1, 1), Retry(), MixedPrecision("float16", scale=LossScale(8.0)), fails())
    plain.runner.run(passes=1)
    assert retried.runner.run(passes=1).share == 1
    assert bits(retried.network) == bits(plain.network)
    assert retried.runner[MixedPrecision].state_dict() == plain.runner[MixedPrecision].state_dict()


def test_gradients_of_an_earlier_batch_are_refused_with_what_to_do():
    class Twice(RunnerItem):
        def on_batch(self, state):
            yield
            yield

    onion = Onion(batches(1), Twice(), MixedPrecision("float16"))
    with pytest.raises(HookError, match=r"mixed_precision found gradients on its way into step .* move it outside the"):
        onion.runner.run(passes=1)


def test_two_runs_inside_one_update_are_unscaled_once():
    class Twice(RunnerItem):
        def on_batch(self, state):
            yield
            yield

    plain = Onion(batches(1, 1), Twice())
    scaled = Onion(batches(1, 1), MixedPrecision("float16", scale=LossScale(256.0)), Twice())
    plain.runner.run(passes=1)
    scaled.runner.run(passes=1)
    assert bits(scaled.network) == bits(plain.network)


# -- two networks ------------------------------------------------------------------------------------------------------


def test_each_of_two_networks_in_one_batch_has_a_scale_of_its_own():
    def pair(*given):
        network = Factored()
        updater = ParameterUpdater(paddle.optimizer.SGD(0.05, parameters=network.parameters()))
        return network, Runner(updater, *given, GradientMachine(network))

    (one, first), (other, second) = (
        pair(MixedPrecision("float16")),
        pair(MixedPrecision("float16", scale=LossScale(4.0))),
    )
    plain, third = pair()
    runner = Runner(Batches(batches(1, 1)), first, second, third)
    runner.run(passes=1)
    assert bits(one) == bits(other) == bits(plain)
    assert [item.name for item in runner.all(MixedPrecision)] == ["mixed_precision", "mixed_precision-2"]


# -- resuming ----------------------------------------------------------------------------------------------------------

STORY = (1, INF, 1, 1, INF, INF, 1, 1)


def saved(folder):
    precision = MixedPrecision("float16", scale=LossScale(16.0, growth_interval=2, backoff_interval=2))
    return Onion(batches(*STORY), precision, outside=[Saver(folder, every=1)], rate=schedules.cosine(0.1, 20))


@pytest.mark.slow
@pytest.mark.parametrize("cut", range(1, 2 * len(STORY)))
def test_a_run_cut_after_any_step_goes_on_to_the_same_bits(cut, tmp_path):
    uncut = saved(tmp_path / "uncut")
    uncut.runner.run(passes=2)
    saved(tmp_path / "cut").runner.run(passes=2, steps=cut)
    resumed = saved(tmp_path / "cut")
    resumed.runner.run(passes=2)
    assert bits(resumed.network) == bits(uncut.network)
    assert moments(resumed) == moments(uncut)
    assert resumed.runner[MixedPrecision].state_dict() == uncut.runner[MixedPrecision].state_dict()
    assert uncut.runner[MixedPrecision].overflows == 6


def test_without_a_scale_there_is_no_state():
    item = MixedPrecision("bfloat16")
    assert item.state_dict() == {}
    item.load_state_dict({})


def test_a_loss_scale_on_one_side_only_is_refused():
    with_scale, without = MixedPrecision("float16"), MixedPrecision("bfloat16")
    with pytest.raises(CheckpointError, match="the checkpoint has a loss scale, but the item has none"):
        without.load_state_dict(with_scale.state_dict())
    with pytest.raises(CheckpointError, match="the item has a loss scale, but the checkpoint has none"):
        with_scale.load_state_dict(without.state_dict())


# -- what Paddle is told -----------------------------------------------------------------------------------------------


@pytest.fixture
def able(monkeypatch):
    """Let the device seem able, and write down what Paddle is asked for."""
    calls = []

    @contextmanager
    def auto_cast(**settings):
        calls.append(("in", settings))
        try:
            yield
        finally:
            calls.append(("out", {}))

    def decorate(models, optimizers=None, **settings):
        calls.append(("decorate", (models, optimizers, settings)))

    monkeypatch.setattr(MixedPrecision, "_is_able", lambda self: True)
    monkeypatch.setattr(paddle.amp, "auto_cast", auto_cast)
    monkeypatch.setattr(paddle.amp, "decorate", decorate)
    return calls


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_inside_runs_in_autocast_and_the_update_does_not(able, dtype):
    note = [Observer(on_batch_end=lambda state, who=who: able.append((who, {}))) for who in ("updated", "computed")]
    onion = Onion(batches(1), MixedPrecision(dtype), note[1], outside=[note[0]])
    onion.runner.run(passes=1)
    settings = {"level": "O1", "dtype": dtype, "custom_black_list": IN_32_BITS}
    assert able == [("in", settings), ("computed", {}), ("out", {}), ("updated", {})]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_autocast_is_left_after_an_error(able, dtype):
    with pytest.raises(PlannedError):
        Onion(batches(1), MixedPrecision(dtype), Failing("on_batch")).runner.run(passes=1)
    assert [name for name, _ in able] == ["in", "out"]


def test_at_level_2_networks_and_optimizers_are_cast_when_the_onion_is_built(able):
    onion = Onion(batches(1), MixedPrecision("float16", "O2"))
    settings = {"level": "O2", "dtype": "float16"}
    assert able == [("decorate", ([onion.network], [onion.updater.optimizer], settings))]


def test_at_level_1_nothing_is_cast(able):
    Onion(batches(1), MixedPrecision("float16"))
    assert able == []


def test_a_device_that_is_not_able_stays_in_32_bits_and_a_warning_says_so(caplog):
    plain, mixed = Onion(batches(1, 1)), Onion(batches(1, 1), MixedPrecision("bfloat16", "O2"))
    plain.runner.run(passes=1)
    with caplog.at_level(logging.WARNING, "onion"):
        mixed.runner.run(passes=1)
    device = paddle.device.get_device()
    assert caplog.messages == [f"mixed_precision: bfloat16 is not supported on {device}; everything stays in 32 bits"]
    assert bits(mixed.network) == bits(plain.network)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_cpu_is_not_able(dtype):
    """Paddle says that it supports bfloat16, and that its auto_cast has no effect there."""
    before = paddle.device.get_device()
    paddle.device.set_device("cpu")
    try:
        assert not is_able(MixedPrecision(dtype))
    finally:
        paddle.device.set_device(before)


# -- where it may stand ------------------------------------------------------------------------------------------------


def parts():
    network = toy_network()
    return ParameterUpdater(OPTIMIZERS["sgd"](network.parameters())), GradientMachine(network)


def refused(*items):
    with pytest.raises(CompositionError) as caught:
        Runner(DataProvider(toy_examples()), *items)
    assert "╭ mixed_precision" in str(caught.value)
    return str(caught.value)


def test_outside_the_updater_it_is_refused_with_the_drawing():
    updater, machine = parts()
    said = refused(MixedPrecision(), updater, machine)
    assert "mixed_precision is outside parameter_updater, which needs the gradients that it prepares; swap them" in said


def test_inside_an_updater_without_a_machine_it_is_refused_with_the_drawing():
    updater, machine = parts()
    said = refused(updater, Runner(MixedPrecision()), machine)
    assert "mixed_precision is inside parameter_updater and not outside gradient_machine; move it between" in said


def test_outside_one_of_two_machines_of_an_update_it_is_refused():
    updater, machine = parts()
    said = refused(updater, machine, MixedPrecision(), GradientMachine(machine.network))
    assert "mixed_precision is inside parameter_updater and not outside gradient_machine; move it between" in said


def test_inside_an_item_that_makes_one_update_of_several_batches_it_is_refused():
    class Sharing(RunnerItem):
        splits_update = True

    updater, machine = parts()
    said = refused(updater, Sharing(), MixedPrecision(), machine)
    assert "mixed_precision is inside sharing, and has to see all of an update; move it outside" in said
    Runner(DataProvider(toy_examples()), updater, MixedPrecision(), Sharing(), machine)


def test_a_saver_inside_it_is_refused(tmp_path):
    updater, machine = parts()
    with pytest.raises(CompositionError, match=r"saver is inside .*mixed_precision"):
        Runner(DataProvider(toy_examples()), updater, MixedPrecision("float16"), Saver(tmp_path), machine)


@pytest.mark.parametrize("settings", [{"dtype": "float32"}, {"dtype": "fp16"}, {"level": "O3"}, {"level": "o1"}])
def test_unknown_settings_are_refused_with_the_known_ones(settings):
    with pytest.raises(CompositionError, match=r"must be '(bfloat16' or 'float16'|O1' or 'O2')"):
        MixedPrecision(**settings)


# -- test and inference onions -----------------------------------------------------------------------------------------


def test_an_inference_onion_made_from_the_training_onion_keeps_the_arithmetic_alone(able):
    onion = Onion(batches(1, 1), MixedPrecision("float16"))
    onion.runner.run(passes=1)
    able.clear()
    before = bits(onion.network)
    inference = onion.runner.without(ParameterUpdater).replace(GradientMachine, Forward(onion.network))
    assert inference.run(passes=1).outputs.shape == [4, 1]
    assert [name for name, _ in able] == ["in", "out"] * 2
    Runner(Given(batches(1)), MixedPrecision("float16", "O2"), Forward(onion.network))
    assert bits(onion.network) == before


def test_an_inner_run_with_the_same_item_leaves_the_training_as_it_was():
    class RunsInside(RunnerItem):
        def on_batch(self, state):
            inference.run(passes=1, parent=state)
            yield

    plain = Onion(batches(1, 1, 1))
    scaled = Onion(batches(1, 1, 1), MixedPrecision("float16", scale=LossScale(64.0)))
    inference = scaled.runner.without(ParameterUpdater).replace(GradientMachine, Forward(scaled.network))
    plain.runner.run(passes=1)
    scaled.runner.insert_before(ParameterUpdater, RunsInside()).run(passes=1)
    assert bits(scaled.network) == bits(plain.network)
    assert scaled.runner[MixedPrecision].scale.good == 3


# -- on a GPU ----------------------------------------------------------------------------------------------------------


@needs_gpu
@pytest.mark.usefixtures("in_16_bits")
@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_training_in_16_bits_comes_near_training_in_32(dtype, level):
    plain = Onion(batches(*[1] * 20))
    mixed = Onion(batches(*[1] * 20), MixedPrecision(dtype, level))
    losses = [float(onion.runner.run(passes=3).loss) for onion in (plain, mixed)]
    assert losses[1] == pytest.approx(losses[0], rel=0.05)
    assert (dtype in str(mixed.network.body.linear.weight.dtype)) == (level == "O2")


@needs_gpu
@pytest.mark.usefixtures("in_16_bits")
@pytest.mark.parametrize("level", ["O1", "O2"])
def test_a_float16_overflow_moves_nothing(level):
    onion = Onion(batches(INF, INF), MixedPrecision("float16", level))
    before = bits(onion.network)
    onion.runner.run(passes=1)
    assert bits(onion.network) == before
    assert onion.runner[MixedPrecision].overflows == 2


@needs_gpu
@pytest.mark.usefixtures("in_16_bits")
@pytest.mark.parametrize("cut", [1, 3])
def test_at_level_2_a_cut_run_goes_on_to_the_same_bits(cut, tmp_path):
    def begun(folder):
        return Onion(batches(*[1] * 6), MixedPrecision("float16", "O2"), outside=[Saver(folder, every=1)])

    uncut = begun(tmp_path / "uncut")
    uncut.runner.run(passes=1)
    begun(tmp_path / "cut").runner.run(passes=1, steps=cut)
    resumed = begun(tmp_path / "cut")
    resumed.runner.run(passes=1)
    assert bits(resumed.network) == bits(uncut.network)
    assert moments(resumed) == moments(uncut)
