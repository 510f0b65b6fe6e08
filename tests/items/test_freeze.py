"""Freeze and Unfreeze: parameters that stay as they are, to the right step and to the bit."""

import re
from contextlib import nullcontext
from itertools import pairwise

import paddle
import pytest

from onion import (
    Accumulate,
    CompositionError,
    Every,
    Freeze,
    GradientMachine,
    Observer,
    ParameterUpdater,
    Runner,
    Saver,
    SkipIf,
    Unfreeze,
)
from onion.testing import Batches, Failing, PlannedError, assert_resumes_exactly
from tests.items.learning import OPTIMIZERS, examples, toy_batches
from tests.rings import Watch
from tests.toys import bits


class Deep(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        paddle.seed(0)
        self.layers = paddle.nn.LayerList([paddle.nn.Linear(8, 8) for _ in range(3)])
        self.head = paddle.nn.Linear(8, 1)

    def forward(self, batch):
        hidden = batch["x"]
        for layer in self.layers:
            hidden = paddle.tanh(layer(hidden))
        return self.head(hidden)

    def loss(self, outputs, batch):
        return paddle.nn.functional.mse_loss(outputs, batch["y"])


ALL = [f"{layer}.{kind}" for layer in ("layers.0", "layers.1", "layers.2", "head") for kind in ("weight", "bias")]
HEAD = ALL[6:]

OPTIMIZED_BY = ["adamw", "momentum", "adamw clipped", "adamw groups clipped", "lamb"]
optimizers = pytest.mark.parametrize("optimizer", OPTIMIZED_BY)


def updater(parameters, optimizer="adamw"):
    return ParameterUpdater(OPTIMIZERS[optimizer](parameters))


def onion(network, *rings, optimizer="adamw", inside=()):
    parts = updater(network.parameters(), optimizer), *inside, GradientMachine(network)
    return Runner(examples(16), *rings, *parts)


def moved(runner, network, passes=1):
    """Run an onion; return the parameters that moved in each of its batches."""
    watch = Watch(lambda state: bits(network))
    Runner(watch, *runner.items).run(passes=passes)
    return [[path for path in ALL if now[path] != then[path]] for then, now in pairwise([*watch.seen, bits(network)])]


def trainable(network):
    return [path for path, each in network.named_parameters() if not each.stop_gradient]


# -- freezing ----------------------------------------------------------------------------------------------------------


@optimizers
@pytest.mark.parametrize(
    ("pattern", "frozen"),
    [
        ("*", ALL),
        ("layers.*", ALL[:6]),
        ("layers.1.weight", ["layers.1.weight"]),
        ("*.bias", ALL[1::2]),
        ("head.*", HEAD),
        ("layers.[01].*", ALL[:4]),
        (re.compile(r"layers\.[12]\."), ALL[2:6]),
        (re.compile("bias$"), ALL[1::2]),
    ],
)
def test_what_matches_does_not_move_and_the_rest_does(pattern, frozen, optimizer):
    network = Deep()
    rest = [path for path in ALL if path not in frozen]
    assert moved(onion(network, Freeze(network, pattern), optimizer=optimizer), network) == [rest] * 4


@optimizers
@pytest.mark.parametrize("until", [0, 1, 3, 5, 8])
def test_until_is_the_first_step_that_trains(until, optimizer):
    network = Deep()
    runner = onion(network, Freeze(network, "layers.*", until=until), optimizer=optimizer)
    assert moved(runner, network, passes=2) == [HEAD if step < until else ALL for step in range(8)]


def test_momentum_from_before_does_not_move_what_is_frozen_later():
    network = Deep()
    runner = onion(network, optimizer="momentum")
    assert moved(runner, network) == [ALL] * 4
    assert moved(runner.insert_before(ParameterUpdater, Freeze(network, "layers.*")), network) == [HEAD] * 4


def test_frozen_equals_an_optimizer_that_does_not_know_them_to_the_bit():
    network, other = Deep(), Deep()
    onion(network, Freeze(network, "layers.*")).run(passes=2)
    for parameter in other.layers.parameters():
        parameter.stop_gradient = True
    Runner(examples(16), updater(other.head.parameters()), GradientMachine(other)).run(passes=2)
    assert bits(network) == bits(other)


def test_within_accumulate_the_whole_group_is_frozen_or_not():
    network = Deep()
    runner = onion(network, inside=[Accumulate(2), Freeze(network, "layers.*", until=1)])
    assert moved(runner, network) == [HEAD, ALL]


def test_a_skipped_batch_does_not_count():
    network = Deep()
    skip = SkipIf(lambda state: state.batch_id == 1)
    assert moved(onion(network, skip, Freeze(network, "layers.*", until=2)), network) == [HEAD, [], HEAD, ALL]


@pytest.mark.parametrize("item", [lambda n: Freeze(n, "*", until=2), lambda n: Unfreeze(n, "*", at=2)])
def test_where_only_some_batches_come_by_the_first_from_the_step_on_is_trained(item):
    network = Deep()
    inner = Every(2, Runner(item(network), updater(network.parameters(), "lamb"), GradientMachine(network)))
    runner = Runner(Freeze(network, "*"), Batches(toy_batches(6)), inner)
    assert moved(runner, network) == [[], [], [], ALL, [], ALL]


def test_it_unfreezes_once_and_then_leaves_it_to_others():
    network = Deep()

    def freeze_again(state):
        if state.step == 3:
            network.head.bias.stop_gradient = True

    rings = Freeze(network, "head.*", until=1), Unfreeze(network, "head.*", at=2), Observer(on_batch_end=freeze_again)
    assert moved(onion(network, *rings), network, passes=2)[4:] == [ALL[:7]] * 4


@pytest.mark.parametrize(
    ("until", "rings"), [(None, []), (2, []), (None, [Failing("on_batch", step=2)])], ids=["run", "unfrozen", "error"]
)
def test_after_the_run_each_is_as_it_was_before(until, rings):
    network = Deep()
    network.head.bias.stop_gradient = True
    freeze, unfreeze = Freeze(network, "*", until=until), Unfreeze(network, "layers.2.*", at=1)
    with pytest.raises(PlannedError) if rings else nullcontext():
        onion(network, freeze, unfreeze, *rings).run(passes=1)
    assert trainable(network) == ALL[:7]


@pytest.mark.parametrize(
    "items",
    [lambda n: [Freeze(n, "layers.*", until=1)], lambda n: [Freeze(n, "layers.*"), Unfreeze(n, "layers.*", at=1)]],
)
def test_an_inner_run_with_the_same_items_leaves_the_outer_one_as_it_was(items):
    network = Deep()
    items = items(network)

    def after_a_test(state):
        Runner(Batches(3), *items).run(passes=1, parent=state)
        return trainable(network)

    onion(network, *items, watch := Watch(after_a_test)).run(passes=1)
    assert watch.seen == [HEAD, ALL, ALL, ALL]


def gradually(network):
    steps = [Unfreeze(network, f"layers.{layer}.*", at=at) for layer, at in ((2, 2), (1, 4), (0, 5))]
    return onion(network, Freeze(network, "layers.*"), *steps)


def test_layer_by_layer():
    network = Deep()
    assert moved(gradually(network), network, passes=2) == [HEAD] * 2 + [ALL[4:]] * 2 + [ALL[2:]] + [ALL] * 3
    assert trainable(network) == ALL


@pytest.mark.slow
def test_a_resumed_run_unfreezes_at_the_right_step_and_ends_with_the_same_bits(tmp_path):
    assert_resumes_exactly(lambda folder: Runner(Saver(folder, every=3), *gradually(Deep()).items), tmp_path, passes=2)


def test_what_was_frozen_before_is_trained_too_and_frozen_again_after_the_run():
    network = Deep()
    network.head.weight.stop_gradient = True
    trace = moved(onion(network, Unfreeze(network, "head.weight", at=3)), network)
    assert trace == [[*ALL[:6], "head.bias"]] * 3 + [ALL]
    assert network.head.weight.stop_gradient


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "pattern", "said"),
    [
        (Deep, "layer.1.weight", r"no parameter of Deep matches 'layer\.1\.weight'; there are layers\.1\.we"),
        (Deep, "layers", r"matches 'layers'; there are .*layers\.0\..* and others"),
        (Deep, re.compile("^encoder"), r"matches '\^encoder'"),
        (paddle.nn.Tanh, "*", "there are none at all"),
    ],
)
@pytest.mark.parametrize("item", [Freeze, lambda network, pattern: Unfreeze(network, pattern, at=3)])
def test_a_pattern_that_matches_nothing_is_refused_with_the_nearest_paths(item, network, pattern, said):
    with pytest.raises(CompositionError, match=said):
        item(network(), pattern)


@pytest.mark.parametrize("step", [-1, 1.5, "3", True])
def test_a_wrong_step_is_refused(step):
    with pytest.raises(CompositionError, match=r"Freeze: until must be an integer >= 0"):
        Freeze(Deep(), "*", until=step)
    with pytest.raises(CompositionError, match=r"Unfreeze: at must be an integer >= 0"):
        Unfreeze(Deep(), "*", at=step)


def test_a_freeze_inside_an_unfreeze_of_the_same_network_is_refused():
    network, other = Deep(), Deep()
    with pytest.raises(CompositionError, match="freeze is inside unfreeze; move it outside"):
        onion(network, Unfreeze(network, "*", at=3), Freeze(network, "layers.*"))
    onion(network, Unfreeze(network, "*", at=3), Freeze(other, "layers.*"))
