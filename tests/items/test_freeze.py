"""Freeze and Unfreeze: parameters that stay as they are, to the right step and to the bit."""

import re

import paddle
import pytest

from onion import (
    Accumulate,
    CompositionError,
    DataProvider,
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
from onion.testing import Batches, Failing, PlannedError, toy_examples


class Deep(paddle.nn.Layer):
    def __init__(self, seed=0):
        super().__init__()
        paddle.seed(seed)
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
OPTIMIZERS = {
    "adamw with decay": lambda p: paddle.optimizer.AdamW(0.05, parameters=p, weight_decay=0.5),
    "momentum with decay": lambda p: paddle.optimizer.Momentum(0.05, parameters=p, weight_decay=0.5),
    "adamw clipped, in groups": lambda p: paddle.optimizer.AdamW(
        0.05, parameters=[{"params": [each]} for each in p], grad_clip=paddle.nn.ClipGradByGlobalNorm(0.1)
    ),
    "lamb": lambda p: paddle.optimizer.Lamb(0.05, parameters=p),
}


def onion(network, *rings, optimizer="adamw with decay", outside=(), inside=()):
    return Runner(
        *outside,
        DataProvider(toy_examples(16), 4, prefetch=0),
        *rings,
        ParameterUpdater(OPTIMIZERS[optimizer](network.parameters())),
        *inside,
        GradientMachine(network),
    )


def moving(network, trace):
    """Return an item that notes in each step which parameters moved."""
    before = {}

    def begin(state):
        before.update({path: each.numpy().tobytes() for path, each in network.named_parameters()})

    def end(state):
        trace.append([path for path, each in network.named_parameters() if each.numpy().tobytes() != before[path]])

    return Observer(on_batch_begin=begin, on_batch_end=end)


def moved(network, *rings, passes=1, **arguments):
    trace = []
    onion(network, *rings, outside=[moving(network, trace)], **arguments).run(passes=passes)
    return trace


# -- freezing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize(
    ("pattern", "frozen"),
    [
        ("layers.*", ALL[:6]),
        ("layers.1.weight", ["layers.1.weight"]),
        ("*.bias", ALL[1::2]),
        ("head.*", ALL[6:]),
        ("layers.[01].*", ALL[:4]),
        (re.compile(r"layers\.[12]\."), ALL[2:6]),
        (re.compile("bias$"), ALL[1::2]),
    ],
)
def test_what_matches_does_not_move_and_the_rest_does(pattern, frozen, optimizer):
    network = Deep()
    rest = [path for path in ALL if path not in frozen]
    assert moved(network, Freeze(network, pattern), optimizer=optimizer) == [rest] * 4


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("until", [0, 1, 3, 5, 8])
def test_until_is_the_first_step_that_trains(until, optimizer):
    network = Deep()
    trace = moved(network, Freeze(network, "layers.*", until=until), passes=2, optimizer=optimizer)
    assert trace == [ALL[6:] if step < until else ALL for step in range(8)]


def test_momentum_from_before_does_not_move_what_is_frozen_later():
    network = Deep()
    optimizer = OPTIMIZERS["momentum with decay"](network.parameters())

    def run(*rings):
        trace = []
        source = DataProvider(toy_examples(8), 4)
        rings = moving(network, trace), source, *rings, ParameterUpdater(optimizer), GradientMachine(network)
        Runner(*rings).run(passes=1)
        return trace

    assert run() == [ALL] * 2
    assert run(Freeze(network, "layers.*")) == [ALL[6:]] * 2


def test_all_of_a_network_may_be_frozen():
    network = Deep()
    assert moved(network, Freeze(network, "*")) == [[]] * 4


def test_frozen_equals_an_optimizer_that_does_not_know_them_to_the_bit():
    network, other = Deep(), Deep()
    onion(network, Freeze(network, "layers.*")).run(passes=2)
    for layer in other.layers:
        for parameter in layer.parameters():
            parameter.stop_gradient = True
    updater = ParameterUpdater(OPTIMIZERS["adamw with decay"](other.head.parameters()))
    Runner(DataProvider(toy_examples(16), 4), updater, GradientMachine(other)).run(passes=2)
    for one, two in zip(network.parameters(), other.parameters(), strict=True):
        assert one.numpy().tobytes() == two.numpy().tobytes()


def test_within_accumulate_the_whole_group_is_frozen_or_not():
    network = Deep()
    assert moved(network, inside=[Accumulate(2), Freeze(network, "layers.*", until=1)]) == [ALL[6:], ALL]


def test_a_skipped_batch_does_not_count():
    network = Deep()
    skip = SkipIf(lambda state: state.batch_id == 1)
    assert moved(network, skip, Freeze(network, "layers.*", until=2)) == [ALL[6:], [], ALL[6:], ALL]


@pytest.mark.parametrize("item", [lambda n: Freeze(n, "*", until=2), lambda n: Unfreeze(n, "*", at=2)])
def test_where_only_some_batches_come_by_the_first_from_the_step_on_is_trained(item):
    network, trace = Deep(), []
    updater = ParameterUpdater(OPTIMIZERS["lamb"](network.parameters()))
    inner = Every(2, Runner(item(network), updater, GradientMachine(network)))
    rings = moving(network, trace), Freeze(network, "*"), Batches(batches(6)), inner
    Runner(*rings).run(passes=1)
    assert trace == [[], [], [], ALL, [], ALL]


def batches(count):
    return [{name: each[name][None] for name in ("x", "y")} for each in toy_examples(count)]


def test_it_unfreezes_once_and_then_leaves_it_to_others():
    network = Deep()

    def freeze_again(state):
        if state.step == 3:
            network.head.bias.stop_gradient = True

    rings = Freeze(network, "head.*", until=1), Unfreeze(network, "head.*", at=2), Observer(on_batch_end=freeze_again)
    assert moved(network, *rings, passes=2)[4:] == [ALL[:7]] * 4


# -- putting back ------------------------------------------------------------------------------------------------------


def trainable(network):
    return [path for path, each in network.named_parameters() if not each.stop_gradient]


@pytest.mark.parametrize("until", [None, 2])
def test_after_the_run_each_is_as_it_was_before(until):
    network = Deep()
    network.head.bias.stop_gradient = True
    runner = onion(network, Freeze(network, "*", until=until))
    runner.run(passes=1)
    assert trainable(network) == ALL[:7]


def test_after_an_error_too():
    network = Deep()
    with pytest.raises(PlannedError):
        onion(
            network, Freeze(network, "layers.*"), Unfreeze(network, "layers.2.*", at=1), Failing("on_batch", step=2)
        ).run(1)
    assert trainable(network) == ALL


@pytest.mark.parametrize(
    "items",
    [
        lambda n: [Freeze(n, "layers.*", until=1)],
        lambda n: [Freeze(n, "layers.*"), Unfreeze(n, "layers.*", at=1)],
    ],
)
def test_an_inner_run_with_the_same_items_leaves_the_outer_one_as_it_was(items):
    network = Deep()
    items = items(network)
    inner = Runner(Batches(3), *items)
    seen = []

    def test(state):
        inner.run(passes=1, parent=state)
        seen.append(trainable(network))

    onion(network, *items, Observer(on_batch_begin=test)).run(passes=1)
    assert seen == [ALL[6:], ALL, ALL, ALL]


# -- unfreezing --------------------------------------------------------------------------------------------------------


def gradually(network):
    return [
        Freeze(network, "layers.*"),
        Unfreeze(network, "layers.2.*", at=2),
        Unfreeze(network, "layers.1.*", at=4),
        Unfreeze(network, "layers.0.*", at=5),
    ]


def test_layer_by_layer():
    network = Deep()
    trace = moved(network, *gradually(network), passes=2)
    assert trace == [ALL[6:]] * 2 + [ALL[4:]] * 2 + [ALL[2:]] + [ALL] * 3
    assert trainable(network) == ALL


def test_what_was_frozen_by_hand_is_trained_too_and_frozen_again_after_the_run():
    network = Deep()
    network.head.weight.stop_gradient = True
    trace = moved(network, Unfreeze(network, "head.weight", at=3))
    assert trace == [[*ALL[:6], "head.bias"]] * 3 + [ALL]
    assert network.head.weight.stop_gradient


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_resumed_run_unfreezes_at_the_right_step_and_ends_with_the_same_bits(cut, tmp_path):
    def begun(folder, seed=0):
        network = Deep(seed)
        return network, onion(network, *gradually(network), outside=[Saver(tmp_path / folder, every=3)])

    def bits(network, runner):
        items = network.state_dict() | runner[ParameterUpdater].state_dict()
        return {key: each.numpy().tobytes() for key, each in items.items()}

    network, uncut = begun("uncut")
    uncut.run(passes=2)
    begun("cut")[1].run(passes=2, steps=cut)
    again, resumed = begun("cut", seed=1)
    trace = []
    resumed.insert_before(DataProvider, moving(again, trace)).run(passes=2)
    assert bits(again, resumed) == bits(network, uncut)
    schedule = [ALL[6:]] * 2 + [ALL[4:]] * 2 + [ALL[2:]] + [ALL] * 3
    assert trace == schedule[cut:]


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_pattern_that_matches_nothing_is_refused_with_the_nearest_paths():
    with pytest.raises(
        CompositionError, match=r"no parameter of Deep matches 'layer\.1\.weight'; there are layers\.1\.we"
    ):
        Freeze(Deep(), "layer.1.weight")
    with pytest.raises(CompositionError, match=r"matches 'layers'; there are .*layers\.0\..* and others"):
        Unfreeze(Deep(), "layers", at=3)
    with pytest.raises(CompositionError, match=r"matches '\^encoder'"):
        Freeze(Deep(), re.compile("^encoder"))
    with pytest.raises(CompositionError, match="there are none at all"):
        Freeze(paddle.nn.Tanh(), "*")


@pytest.mark.parametrize("step", [-1, 1.5, "3", True])
def test_what_is_no_step_is_refused(step):
    with pytest.raises(CompositionError, match=r"Freeze: until must be an integer >= 0"):
        Freeze(Deep(), "*", until=step)
    with pytest.raises(CompositionError, match=r"Unfreeze: at must be an integer >= 0"):
        Unfreeze(Deep(), "*", at=step)


def test_a_freeze_inside_an_unfreeze_of_the_same_network_is_refused():
    network, other = Deep(), Deep()
    with pytest.raises(CompositionError, match="freeze is inside unfreeze; move it outside"):
        onion(network, Unfreeze(network, "*", at=3), Freeze(network, "layers.*"))
    onion(network, Unfreeze(network, "*", at=3), Freeze(other, "layers.*"))


def test_they_are_drawn():
    network = Deep()
    drawing = str(onion(network, Freeze(network, "layers.*", until=3), Unfreeze(network, "layers.1.*", at=2)))
    assert "Freeze(Deep, pattern='layers.*', until=3)" in drawing
    assert "Unfreeze(Deep, pattern='layers.1.*', at=2)" in drawing
