"""GradientMachine: forward, loss and backward, to the bit what a plain loop computes."""

import numpy as np
import paddle
import pytest

from onion import (
    CheckpointError,
    CompositionError,
    DataProvider,
    Forward,
    GradientMachine,
    ParameterUpdater,
    Runner,
    Saver,
    State,
)
from onion.data import collate
from onion.testing import Batches, assert_resumes_exactly, toy_examples, toy_network
from tests.abilities import needs_bfloat16
from tests.items.learning import learning, toy_batches
from tests.toys import bits

optimizers = paddle.optimizer


def sgd(network):
    return optimizers.SGD(0.05, parameters=network.parameters())


def adamw_with_schedule_and_clipping(network):
    decay = optimizers.lr.PolynomialDecay(0.1, decay_steps=9)
    schedule = optimizers.lr.LinearWarmup(decay, warmup_steps=3, start_lr=0.0, end_lr=0.1)
    clip = paddle.nn.ClipGradByGlobalNorm(0.5)
    return optimizers.AdamW(schedule, parameters=network.parameters(), weight_decay=0.1, grad_clip=clip)


def parameter_groups(network):
    groups = [
        {"params": [network.linear.weight], "weight_decay": 0.1},
        {"params": [network.linear.bias], "weight_decay": 0.0, "learning_rate": 0.5},
    ]
    return optimizers.AdamW(0.1, parameters=groups)


def plain_loop(network, optimizer, examples, passes, batch_size):
    rate = optimizer._learning_rate
    for _ in range(passes):
        for start in range(0, len(examples), batch_size):
            batch = {name: paddle.to_tensor(a) for name, a in collate(examples[start : start + batch_size]).items()}
            network.loss(network(batch), batch).backward()
            optimizer.step()
            optimizer.clear_grad()
            if hasattr(rate, "step"):
                rate.step()


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("optimizer_of", [sgd, adamw_with_schedule_and_clipping, parameter_groups])
def test_training_equals_a_plain_loop_to_the_bit(optimizer_of, prefetch):
    examples = toy_examples(20)
    expected, network = toy_network(), toy_network()
    before = bits(network)
    plain_loop(expected, optimizer_of(expected), examples, passes=3, batch_size=8)
    data, updater = DataProvider(examples, 8, prefetch=prefetch), ParameterUpdater(optimizer_of(network))
    Runner(data, updater, GradientMachine(network)).run(passes=3)
    assert bits(network) == bits(expected) != before


def test_outputs_and_loss_are_left_on_the_state_and_the_batch_stays_numpy():
    network, (batch,) = toy_network(), toy_batches(1, 2)
    state = State(batch=batch)
    GradientMachine(network).on_batch(state)
    outputs = network({"x": paddle.to_tensor(batch["x"])})
    assert (state.outputs == outputs).all()
    assert float(state.loss) == float(((outputs - batch["y"]) ** 2).mean())
    assert network.linear.weight.grad is not None
    assert state.batch is batch
    assert isinstance(batch["x"], np.ndarray)


def test_a_loss_function_takes_the_place_of_the_networks_own():
    machine = GradientMachine(toy_network(), loss=lambda outputs, batch: (outputs * 0 + 7).mean())
    assert float(Runner(Batches(toy_batches(1)), machine).run(1).loss) == 7


def test_gradients_of_two_machines_on_one_network_add_up():
    once, twice = toy_network(), toy_network()
    Runner(Batches(toy_batches(1)), GradientMachine(once)).run(1)
    Runner(Batches(toy_batches(1)), GradientMachine(twice), GradientMachine(twice)).run(1)
    assert (twice.linear.weight.grad == 2 * once.linear.weight.grad).all()


@pytest.mark.parametrize("share", [0.5, 2.0, 1 / 3])
def test_the_share_of_an_update_scales_the_gradient_and_not_the_loss(share):
    whole, part = toy_network(), toy_network()
    states = [State(batch=toy_batches(1, 2)[0], share=each) for each in (1.0, share)]
    for network, state in zip((whole, part), states, strict=True):
        GradientMachine(network).on_batch(state)
    assert float(states[0].loss) == float(states[1].loss)
    np.testing.assert_allclose(part.linear.weight.grad.numpy(), share * whole.linear.weight.grad.numpy(), rtol=1e-6)


def test_a_network_without_loss_is_refused_with_both_remedies():
    with pytest.raises(CompositionError, match=r"give Linear a method loss.*or pass GradientMachine\(network, loss="):
        GradientMachine(paddle.nn.Linear(2, 1))


class OfFields(paddle.nn.Linear):
    """A network that is called with the fields of a batch one by one, as other trainers do."""

    def forward(self, x, y):
        return super().forward(x)

    def loss(self, outputs, batch):
        return outputs.mean()


class OfFieldsByName(OfFields):
    def forward(self, *, x):
        return super().forward(x, None)


@pytest.mark.parametrize("network", [OfFields, OfFieldsByName])
@pytest.mark.parametrize("item", [GradientMachine, Forward])
def test_a_network_that_takes_fields_instead_of_the_batch_is_refused(network, item):
    told = rf"{network.__name__}\.forward\(.*x.*\) has to take the batch, whole and alone: def forward\(self, batch\)"
    with pytest.raises(CompositionError, match=told):
        item(network(2, 1))


def test_the_network_is_put_into_training_mode_for_the_run():
    network = toy_network()
    network.eval()
    Runner(Batches([]), GradientMachine(network)).run(passes=1)
    assert all(layer.training for layer in network.sublayers(include_self=True))


# -- saving and loading ------------------------------------------------------------------------------------------------


def as_numpy(saved):
    return {name: tensor.numpy() for name, tensor in saved.items()}


@needs_bfloat16
def test_a_bfloat16_network_comes_back_bitwise_from_numpy():
    one, other = (toy_network(seed=seed).bfloat16() for seed in (1, 2))
    GradientMachine(other).load_state_dict(as_numpy(one.state_dict()))
    assert bits(one) == bits(other)
    assert other.linear.weight.dtype == paddle.bfloat16


class Siamese(paddle.nn.Layer):
    """One tower under two names, one weight that two layers hold, and a buffer."""

    def __init__(self, seed=0):
        super().__init__()
        paddle.seed(seed)
        self.left = self.right = paddle.nn.Linear(3, 3)
        self.out, self.tied = paddle.nn.Linear(3, 3), paddle.nn.Linear(3, 3)
        self.tied.weight = self.out.weight
        self.register_buffer("offset", paddle.rand([3]))

    def forward(self, batch):
        return self.tied(self.out(self.left(batch) - self.right(-batch))) + self.offset

    def loss(self, outputs, batch):
        return outputs.square().mean()


ONCE = {"left.weight", "left.bias", "out.weight", "out.bias", "tied.bias", "offset"}


def test_what_has_several_paths_is_saved_once_by_its_first_path():
    network = Siamese()
    assert network.state_dict().keys() == ONCE | {"right.weight", "right.bias", "tied.weight"}
    assert GradientMachine(network).state_dict().keys() == ONCE


SAVED = {
    "once": lambda network: GradientMachine(network).state_dict(),
    "by every path, as in old checkpoints": lambda network: network.state_dict(),
    "by any of its paths": lambda network: {
        {"out.weight": "tied.weight"}.get(path, path): tensor
        for path, tensor in GradientMachine(network).state_dict().items()
    },
}


@pytest.mark.parametrize("form", SAVED)
def test_what_has_several_paths_is_loaded_if_it_was_saved(form):
    one, other = Siamese(1), Siamese(2)
    GradientMachine(other).load_state_dict(as_numpy(SAVED[form](one)))
    assert bits(other) == bits(one)
    assert other.left is other.right
    assert other.tied.weight is other.out.weight


def test_a_run_with_shared_layers_resumes_exactly(tmp_path):
    def onion(folder):
        data = DataProvider([np.full(3, number, "float32") for number in range(1, 13)], 2)
        return Runner(Saver(folder, every=2), data, *learning(Siamese(), optimizer="Adam"))

    assert_resumes_exactly(onion, tmp_path, passes=2, cuts=[4])


@pytest.mark.parametrize(
    ("make", "change", "said"),
    [
        (toy_network, {"linear.bias": None}, "linear.bias is missing"),
        (toy_network, {"extra": np.ones(1)}, "extra is unknown to the network"),
        (
            toy_network,
            {"linear.bias": np.ones(2, "f4")},
            r"linear.bias is float32 \[2\], the network's is float32 \[1\]",
        ),
        (toy_network, {"linear.bias": np.ones((), "f4")}, r"linear.bias is float32 \[\], the"),
        (toy_network, {"linear.bias": np.ones(1, "f8")}, r"linear.bias is float64 \[1\], the"),
        (toy_network, {str(i): np.ones(1) for i in range(9)}, "and 4 more"),
        (Siamese, {"left.weight": None}, "left.weight is missing"),
        (Siamese, {"right.weight": np.ones((2, 3), "f4")}, r"right.weight is float32 \[2, 3\]"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_by_name_and_the_network_unchanged(make, change, said):
    network = make()
    before = bits(network)
    saved = {name: array + 1 for name, array in as_numpy(GradientMachine(network).state_dict()).items()} | change
    with pytest.raises(CheckpointError, match=said):
        GradientMachine(network).load_state_dict({name: each for name, each in saved.items() if each is not None})
    assert bits(network) == before
