"""MixedPrecision: scaled on the way in, unscaled on the way out, an overflow moves nothing; what Paddle is asked for.

Paddle has no 16-bit arithmetic on the CPU, where the loss scale works all the same. So it is tested in 32 bits, with
losses that overflow on demand; the tests that need a GPU are marked.
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
    ParameterUpdater,
    Runner,
    RunnerItem,
    Saver,
    SkipIf,
    schedules,
)
from onion.items.mixed_precision import IN_32_BITS, unscale
from onion.testing import Batches, Failing, PlannedError, toy_network
from tests.abilities import known, needs_gpu
from tests.items.learning import OPTIMIZERS, Wrapped, assert_refused, examples, learning, plain, toy_batches
from tests.rings import Retry, Watch, Within
from tests.toys import bits

is_able = MixedPrecision._is_able


@pytest.fixture(autouse=True)
def in_32_bits(request, monkeypatch):
    """Let every device be as the CPU, so that all tests but those of a GPU are the same everywhere."""
    if "gpu" not in request.keywords:
        monkeypatch.setattr(MixedPrecision, "_is_able", lambda self: False)


INF, NAN = float("inf"), float("nan")


def batches(*factors):
    """Return batches whose loss is multiplied by a factor; infinity makes it overflow."""
    both = zip(toy_batches(len(factors), 4), factors, strict=True)
    return [{**batch, "factor": np.full(4, factor, "float32")} for batch, factor in both]


class Factored(Wrapped):
    """The toy network, its loss multiplied by a factor of the batch."""

    def loss(self, outputs, batch):
        return super().loss(outputs, batch) * batch["factor"].mean()


class Onion:
    """A training on given batches, and its parts."""

    def __init__(self, given, *rings, optimizer="adamw clipped", outside=()):
        self.network = Factored()
        make = OPTIMIZERS.get(optimizer, optimizer)
        self.updater = ParameterUpdater(make(self.network.parameters()))
        data = DataProvider(given, 1, prefetch=0, collate=lambda examples: examples[0])
        self.runner = Runner(*outside, data, self.updater, *rings, GradientMachine(self.network))

    def run(self, passes=1, **limits):
        self.state = self.runner.run(passes=passes, **limits)
        return self

    def bits(self):
        return bits(self.network), plain(self.updater.state_dict())


def trained(factors, *rings, **settings):
    return Onion(batches(*factors), *rings, **settings).run()


def scaled(scale=8.0, **settings):
    return MixedPrecision("float16", scale=LossScale(scale, **settings))


# -- scaling -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", known(OPTIMIZERS))
def test_a_scale_that_is_a_power_of_two_changes_no_bit(optimizer):
    plain, with_scale = (trained([1] * 8, *rings, optimizer=optimizer) for rings in ([], [scaled(1024.0)]))
    assert with_scale.bits() == plain.bits()
    assert float(with_scale.state.loss) == float(plain.state.loss)


def test_the_machine_works_on_the_scaled_loss_and_the_updater_on_plain_gradients():
    def gradient(state):
        return state.share, onion.network.body.linear.bias.grad.numpy().copy()

    outside, inside = (Watch(gradient, "on_batch_end") for _ in range(2))
    onion = Onion(batches(1), outside, scaled(8.0), inside)
    onion.run()
    ((outer, plain),), ((inner, large),) = outside.seen, inside.seen
    assert (outer, inner) == (1, 8)
    np.testing.assert_array_equal(large, 8 * plain)


class Shares(RunnerItem):
    """Run the inside once for each share of the update."""

    def __init__(self, *shares):
        self.shares = shares

    def on_batch(self, state):
        share = state.share
        for own in self.shares:
            state.share = share * own
            yield
            assert state.share == share * own
        state.share = share


RINGS = {
    "shares inside": lambda scale: [scale, Shares(0.5, 0.5)],
    "a share set outside": lambda scale: [Shares(0.25), scale],
    "two runs inside": lambda scale: [scale, Shares(1, 1)],
    "accumulate": lambda scale: [scale, Accumulate(3)],
    "nan guard": lambda scale: [NanGuard("skip"), scale, Accumulate(2)],
    "retried": lambda scale: [Retry(), scale, Failing("on_batch", times=1)],
    "retried on the way out": lambda scale: [Retry(), scale, Failing("on_batch", "out", times=1)],
}


@pytest.mark.parametrize("rings", RINGS)
def test_with_other_items_of_an_update_it_changes_no_bit(rings):
    scale = scaled(256.0)
    plain = [ring for ring in RINGS[rings](scale) if not isinstance(ring, (MixedPrecision, Retry, Failing))]
    onion, expected = trained([1] * 6, *RINGS[rings](scale)), trained([1] * 6, *plain)
    assert onion.bits() == expected.bits() != Onion(batches(1)).bits()
    assert onion.state.share == 1
    assert scale.state_dict() == {"scale": 256.0, "good": onion.state.step, "bad": 0, "overflows": 0}


def test_bfloat16_has_no_scale_unless_it_is_given_one_and_float16_has_one_of_its_own():
    plain = MixedPrecision()
    assert (plain.dtype, plain.scale, plain.log_values()) == ("bfloat16", None, {})
    one, other = MixedPrecision("float16"), MixedPrecision("float16")
    assert one.scale == LossScale()
    assert one.scale is not other.scale
    assert MixedPrecision("bfloat16", scale=LossScale(2.0)).log_values() == {"loss_scale": 2.0, "overflows": 0.0}


def test_each_of_two_networks_in_one_batch_has_a_scale_of_its_own():
    networks = [Factored() for _ in range(3)]
    rings = [MixedPrecision("float16")], [scaled(4.0)], []
    nested = [Runner(*learning(network, *ring)) for network, ring in zip(networks, rings, strict=True)]
    runner = Runner(Batches(batches(1, 1)), *nested)
    runner.run(passes=1)
    one, other, plain = map(bits, networks)
    assert one == other == plain
    assert [item.name for item in runner.all(MixedPrecision)] == ["mixed_precision", "mixed_precision-2"]


# -- overflow ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [INF, -INF, NAN])
@pytest.mark.parametrize("optimizer", known(OPTIMIZERS))
def test_an_overflow_moves_nothing_not_even_moments(optimizer, bad):
    one, two = batches(1, 1)
    (overflows,) = batches(bad)
    without = Onion([one, two], optimizer=optimizer).run()
    overflowing = Onion([overflows, one, overflows, two], scaled(8.0), optimizer=optimizer).run()
    assert overflowing.bits() == without.bits()
    assert overflowing.state.step == 4  # the batches were run, and count


def test_the_scale_shrinks_at_an_overflow_and_grows_after_good_updates():
    precision = scaled(16.0, growth_interval=2)
    scales = Watch(lambda state: precision.log_values()["loss_scale"], "on_batch_end")
    trained([1, INF, 1, 1, INF, INF, 1, 1], scales, precision)
    assert scales.seen == [16, 8, 8, 16, 8, 4, 4, 8]
    assert precision.log_values()["overflows"] == 3


def test_a_scale_that_is_too_large_itself_comes_down_until_updates_are_made():
    precision = scaled(2.0**127, backoff_factor=2.0**-3)
    assert trained([1] * 12, precision).bits() != Onion(batches(1)).bits()
    assert 0 < precision.overflows < 12
    assert precision.scale.value == 2.0 ** (127 - 3 * precision.overflows)


def test_an_overflow_steps_the_schedule_and_is_logged_with_its_step(caplog):
    with caplog.at_level(logging.INFO, "onion"):
        onion = trained(
            [1, INF, 1], scaled(8.0), optimizer=lambda p: paddle.optimizer.AdamW(schedules.noam(0.1, 8), parameters=p)
        )
    assert onion.updater.optimizer.get_lr() == pytest.approx(0.1 * 4 / 8)
    assert caplog.messages[-1] == "mixed_precision: step 2 overflowed and was skipped; loss scale 4"


def test_one_infinity_among_many_numbers_is_found_and_all_are_divided():
    gradients = [paddle.to_tensor([[2.0, 4.0]]), paddle.to_tensor([6.0], dtype="float64")]
    assert unscale(gradients, 2.0)
    assert [gradient.numpy().tolist() for gradient in gradients] == [[[1.0, 2.0]], [3.0]]
    assert not unscale([paddle.ones([100]), paddle.to_tensor([1.0, INF])], 2.0)
    assert not unscale([paddle.to_tensor([NAN], dtype="float64"), paddle.ones([3])], 2.0)


def test_a_skipped_batch_does_not_count_as_a_good_update():
    precision = scaled(8.0, growth_interval=1)
    trained([1, 1], precision, SkipIf(lambda state: True))
    assert precision.state_dict() == {"scale": 8.0, "good": 0, "bad": 0, "overflows": 0}


def test_gradients_of_an_earlier_batch_are_refused_with_what_to_do():
    with pytest.raises(HookError, match=r"mixed_precision found gradients on its way into step .* move it outside the"):
        trained([1], Shares(1, 1), MixedPrecision("float16"))


def test_a_loss_scale_on_one_side_only_is_refused():
    with_scale, without = MixedPrecision("float16"), MixedPrecision("bfloat16")
    without.load_state_dict({})
    with pytest.raises(CheckpointError, match="the checkpoint has a loss scale, but the item has none"):
        without.load_state_dict(with_scale.state_dict())
    with pytest.raises(CheckpointError, match="the item has a loss scale, but the checkpoint has none"):
        with_scale.load_state_dict(without.state_dict())


# -- what Paddle is asked for ------------------------------------------------------------------------------------------


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
            calls.append("out")

    def decorate(*cast, **settings):
        calls.append(("decorate", *cast, settings))

    monkeypatch.setattr(MixedPrecision, "_is_able", lambda self: True)
    monkeypatch.setattr(paddle.amp, "auto_cast", auto_cast)
    monkeypatch.setattr(paddle.amp, "decorate", decorate)
    return calls


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_inside_runs_in_autocast_and_the_update_does_not(able, dtype):
    updated, computed = (Watch(lambda state, who=who: able.append(who), "on_batch_end") for who in ("step", "computed"))
    settings = {"level": "O1", "dtype": dtype, "custom_black_list": IN_32_BITS}
    onion = Onion(batches(1), MixedPrecision(dtype), computed, outside=[updated])
    assert able == [], "at level 1 nothing is cast"
    onion.run()
    assert able == [("in", settings), "computed", "out", "step"]
    able.clear()
    with pytest.raises(PlannedError):
        trained([1], MixedPrecision(dtype), Failing("on_batch"))
    assert able == [("in", settings), "out"]


def test_at_level_2_networks_and_optimizers_are_cast_when_the_onion_is_built(able):
    onion = Onion(batches(1), MixedPrecision("float16", "O2"))
    settings = {"level": "O2", "dtype": "float16"}
    assert able == [("decorate", [onion.network], [onion.updater.optimizer], settings)]


def test_a_device_that_is_not_able_stays_in_32_bits_with_a_warning(caplog):
    with caplog.at_level(logging.WARNING, "onion"):
        mixed = trained([1, 1], MixedPrecision("bfloat16", "O2"))
    device = paddle.device.get_device()
    assert caplog.messages == [f"mixed_precision: bfloat16 is not supported on {device}; everything stays in 32 bits"]
    assert mixed.bits() == trained([1, 1]).bits()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_cpu_is_not_able(dtype, monkeypatch):
    """Paddle reports that it supports bfloat16, and that its auto_cast has no effect there."""
    monkeypatch.setattr(paddle.device, "get_device", lambda: "cpu")
    assert not is_able(MixedPrecision(dtype))


def test_a_wrong_place_is_refused_with_the_drawing():
    class Sharing(RunnerItem):
        splits_update = True

    updater, machine = learning(toy_network())
    precision, second = MixedPrecision("float16"), GradientMachine(machine.network)
    said = "mixed_precision is outside parameter_updater, which needs the gradients that it prepares; swap them"
    assert_refused(said, precision, updater, machine)
    said = "mixed_precision is inside parameter_updater and not outside gradient_machine; move it between"
    assert_refused(said, updater, Runner(precision), machine)
    assert_refused(said, updater, machine, precision, second)
    said = "mixed_precision is inside sharing, and has to see all of an update; move it outside"
    assert_refused(said, updater, Sharing(), precision, machine)
    assert_refused("saver is inside .*mixed_precision", updater, precision, Saver("never"), machine)
    Runner(examples(), updater, precision, Sharing(), machine)


@pytest.mark.parametrize("settings", [{"dtype": "float32"}, {"dtype": "fp16"}, {"level": "O3"}, {"level": "o1"}])
def test_unknown_settings_are_refused_with_the_known_ones(settings):
    with pytest.raises(CompositionError, match=r"must be '(bfloat16' or 'float16'|O1' or 'O2')"):
        MixedPrecision(**settings)


def inference(onion):
    return onion.runner.without(ParameterUpdater).replace(GradientMachine, Forward(onion.network))


def test_an_inference_onion_made_from_the_training_onion_keeps_the_arithmetic_alone(able):
    onion = trained([1, 1], MixedPrecision("float16"))
    able.clear()
    before = bits(onion.network)
    assert inference(onion).run(passes=1).outputs.shape == [4, 1]
    assert able[1::2] == ["out"] * 2
    Runner(Batches(batches(1)), MixedPrecision("float16", "O2"), Forward(onion.network))
    assert bits(onion.network) == before


def test_an_inner_run_with_the_same_item_leaves_the_training_as_it_was():
    onion = Onion(batches(1, 1, 1), scaled(64.0))
    onion.runner.insert_before(ParameterUpdater, Within(inference(onion))).run(passes=1)
    assert onion.bits() == trained([1, 1, 1]).bits()
    assert onion.runner[MixedPrecision].scale.good == 3


# -- on a GPU ----------------------------------------------------------------------------------------------------------


@needs_gpu
@pytest.mark.parametrize("level", ["O1", "O2"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_training_in_16_bits_comes_near_training_in_32(dtype, level):
    plain, mixed = (Onion(batches(*[1] * 20), *rings) for rings in ([], [MixedPrecision(dtype, level)]))
    losses = [float(onion.run(passes=3).state.loss) for onion in (plain, mixed)]
    assert losses[1] == pytest.approx(losses[0], rel=0.05)
    assert (dtype in str(mixed.network.body.linear.weight.dtype)) == (level == "O2")


@needs_gpu
@pytest.mark.parametrize("level", ["O1", "O2"])
def test_a_float16_overflow_moves_nothing(level):
    onion = Onion(batches(INF, INF), MixedPrecision("float16", level))
    before = bits(onion.network)
    assert bits(onion.run().network) == before
    assert onion.runner[MixedPrecision].overflows == 2


@needs_gpu
@pytest.mark.parametrize("cut", [1, 3])
def test_at_level_2_a_cut_run_continues_to_the_same_bits(cut, tmp_path):
    def onion(folder):
        return Onion(batches(*[1] * 6), MixedPrecision("float16", "O2"), outside=[Saver(tmp_path / folder, every=1)])

    uncut = onion("uncut").run()
    onion("cut").run(steps=cut)
    assert onion("cut").run().bits() == uncut.bits()
