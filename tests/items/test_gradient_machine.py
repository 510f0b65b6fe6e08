"""GradientMachine: forward, cost and backward, to the bit what a loop written by hand computes."""

import numpy as np
import paddle
import pytest

from onion import (
    CheckpointError,
    CompositionError,
    DataProvider,
    GradientMachine,
    ParameterUpdater,
    Runner,
    Saver,
    State,
)
from onion.testing import Batches, toy_examples, toy_network
from tests.abilities import needs_bfloat16


def sgd(network):
    return paddle.optimizer.SGD(0.05, parameters=network.parameters())


def adamw_with_schedule_and_clipping(network):
    schedule = paddle.optimizer.lr.LinearWarmup(
        paddle.optimizer.lr.PolynomialDecay(0.1, decay_steps=9), warmup_steps=3, start_lr=0.0, end_lr=0.1
    )
    clip = paddle.nn.ClipGradByGlobalNorm(0.5)
    return paddle.optimizer.AdamW(schedule, parameters=network.parameters(), weight_decay=0.1, grad_clip=clip)


def parameter_groups(network):
    groups = [
        {"params": [network.linear.weight], "weight_decay": 0.1},
        {"params": [network.linear.bias], "weight_decay": 0.0, "learning_rate": 0.5},
    ]
    return paddle.optimizer.AdamW(0.1, parameters=groups)


def values(network):
    return {name: tensor.numpy().tobytes() for name, tensor in network.state_dict().items()}


def by_hand(network, optimizer, examples, passes, batch_size):
    rate = optimizer._learning_rate
    for _ in range(passes):
        for start in range(0, len(examples), batch_size):
            part = examples[start : start + batch_size]
            batch = {name: paddle.to_tensor(np.stack([each[name] for each in part])) for name in ("x", "y")}
            network.loss(network(batch), batch).backward()
            optimizer.step()
            optimizer.clear_grad()
            if hasattr(rate, "step"):
                rate.step()


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize("optimizer_of", [sgd, adamw_with_schedule_and_clipping, parameter_groups])
def test_training_equals_a_loop_written_by_hand_to_the_bit(optimizer_of, prefetch):
    examples = toy_examples(20)
    expected, network = toy_network(), toy_network()
    assert values(expected) == values(network)
    by_hand(expected, optimizer_of(expected), examples, passes=3, batch_size=8)

    Runner(
        DataProvider(examples, 8, prefetch=prefetch),
        ParameterUpdater(optimizer_of(network)),
        GradientMachine(network),
    ).run(passes=3)

    assert values(network) == values(expected)
    assert values(network) != values(toy_network())


def one_batch():
    return {"x": np.ones((2, 8), "float32"), "y": np.ones((2, 1), "float32")}


def test_outputs_and_loss_are_left_on_the_state_and_the_batch_stays_as_it_was():
    network, batch = toy_network(), one_batch()

    state = Runner(Batches([batch]), GradientMachine(network)).run(passes=1)

    outputs = network({"x": paddle.to_tensor(batch["x"])})
    assert (state.outputs == outputs).all()
    assert float(state.loss) == float(((outputs - 1) ** 2).mean())
    assert network.linear.weight.grad is not None


def test_the_batch_on_the_state_stays_numpy():
    batch = one_batch()
    state = State(batch=batch)
    GradientMachine(toy_network()).on_batch(state)
    assert state.batch is batch
    assert isinstance(batch["x"], np.ndarray)


def test_a_loss_function_takes_the_place_of_the_networks_own():
    state = Runner(Batches([one_batch()]), GradientMachine(toy_network(), loss=lambda o, b: (o * 0 + 7).mean())).run(1)
    assert float(state.loss) == 7


def test_gradients_of_two_machines_on_one_network_add_up():
    once, twice = toy_network(), toy_network()
    Runner(Batches([one_batch()]), GradientMachine(once)).run(1)
    Runner(Batches([one_batch()]), GradientMachine(twice), GradientMachine(twice)).run(1)
    assert (twice.linear.weight.grad == 2 * once.linear.weight.grad).all()


def test_a_network_without_loss_is_refused_with_both_remedies():
    with pytest.raises(CompositionError, match=r"give Linear a method loss.*or pass GradientMachine\(network, loss="):
        GradientMachine(paddle.nn.Linear(2, 1))


def test_the_network_is_put_into_training_mode_for_the_run():
    network = toy_network()
    network.eval()
    Runner(Batches([]), GradientMachine(network)).run(passes=1)
    assert all(layer.training for layer in network.sublayers(include_self=True))


def normalized():
    paddle.seed(1)
    return paddle.nn.Sequential(paddle.nn.Linear(3, 2), paddle.nn.BatchNorm1D(2))


@pytest.mark.filterwarnings("ignore:When training, we now always track")
def test_parameters_and_buffers_go_into_another_network():
    one, other = normalized(), normalized()
    one(paddle.ones([4, 3]) * paddle.arange(4, dtype="float32").unsqueeze(1))
    assert values(one) != values(other)

    def machine(network):
        return GradientMachine(network, loss=lambda o, b: o.mean())

    saved = machine(one).state_dict()
    assert set(saved) == {"0.weight", "0.bias", "1.weight", "1.bias", "1._mean", "1._variance"}
    machine(other).load_state_dict({name: tensor.numpy() for name, tensor in saved.items()})
    assert values(one) == values(other)


@needs_bfloat16
def test_a_bfloat16_network_comes_back_bitwise_from_numpy():
    one, other = toy_network(seed=1), toy_network(seed=2)
    one.bfloat16()
    other.bfloat16()
    GradientMachine(other).load_state_dict({name: tensor.numpy() for name, tensor in one.state_dict().items()})
    assert values(one) == values(other)
    assert other.linear.weight.dtype == paddle.bfloat16


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda saved: saved.pop("linear.bias"), "linear.bias is missing"),
        (lambda saved: saved.update(extra=np.ones(1)), "extra is unknown to the network"),
        (
            lambda saved: saved.update({"linear.bias": np.ones(2, "float32")}),
            r"linear.bias is float32 \[2\], the network's is float32 \[1\]",
        ),
        (lambda saved: saved.update({"linear.bias": np.ones((), "float32")}), r"linear.bias is float32 \[\], the"),
        (lambda saved: saved.update({"linear.bias": np.ones(1, "float64")}), r"linear.bias is float64 \[1\], the"),
        (lambda saved: saved.update({str(i): np.ones(1) for i in range(9)}), "and 4 more"),
    ],
)
def test_a_network_that_does_not_fit_is_refused_by_name_and_left_as_it_was(change, said):
    network = toy_network()
    before = values(network)
    saved = {name: tensor.numpy() + 1 for name, tensor in network.state_dict().items()}
    change(saved)
    with pytest.raises(CheckpointError, match=said):
        GradientMachine(network).load_state_dict(saved)
    assert values(network) == before


@pytest.mark.parametrize("share", [0.5, 2.0, 1 / 3])
def test_the_share_of_an_update_scales_the_gradient_and_not_the_loss(share):
    whole, part = toy_network(), toy_network()
    states = State(batch=one_batch()), State(batch=one_batch(), share=share)
    for network, state in zip((whole, part), states, strict=True):
        GradientMachine(network).on_batch(state)
    assert float(states[0].loss) == float(states[1].loss)
    np.testing.assert_allclose(part.linear.weight.grad.numpy(), share * whole.linear.weight.grad.numpy(), rtol=1e-6)


# -- what stands in several places -------------------------------------------------------------------------------------


class Siamese(paddle.nn.Layer):
    """One tower by two names, and one weight that two layers hold."""

    def __init__(self, seed):
        super().__init__()
        paddle.seed(seed)
        self.left = self.right = paddle.nn.Linear(3, 3)
        self.out = paddle.nn.Linear(3, 3)
        self.tied = paddle.nn.Linear(3, 3)
        self.tied.weight = self.out.weight

    def forward(self, batch):
        return self.tied(self.out(self.left(batch) - self.right(-batch)))

    def loss(self, outputs, batch):
        return outputs.square().mean()


ONCE = {"left.weight", "left.bias", "out.weight", "out.bias", "tied.bias"}


def as_numpy(saved):
    return {name: tensor.numpy() for name, tensor in saved.items()}


def test_what_stands_in_several_places_is_saved_once_by_its_first_path():
    network = Siamese(0)
    assert network.state_dict().keys() == ONCE | {"right.weight", "right.bias", "tied.weight"}
    assert GradientMachine(network).state_dict().keys() == ONCE


@pytest.mark.parametrize("every_path", [False, True], ids=["saved once", "saved by every path, as it once was"])
def test_it_is_loaded_in_both_forms(every_path):
    one, other = Siamese(1), Siamese(2)
    saved = as_numpy(one.state_dict() if every_path else GradientMachine(one).state_dict())
    GradientMachine(other).load_state_dict(saved)
    assert values(other) == values(one)
    assert other.left is other.right
    assert other.tied.weight is other.out.weight


def test_it_is_loaded_by_any_of_its_paths():
    one, other = Siamese(1), Siamese(2)
    saved = as_numpy(GradientMachine(one).state_dict())
    saved["tied.weight"] = saved.pop("out.weight")
    GradientMachine(other).load_state_dict(saved)
    assert values(other) == values(one)


def test_it_is_missing_only_if_all_its_paths_are_and_must_fit_by_each():
    network = Siamese(0)
    before = values(network)
    for change, said in (
        (lambda saved: saved.pop("left.weight"), "left.weight is missing"),
        (lambda saved: saved.update({"right.weight": np.ones((2, 3), "float32")}), r"right.weight is float32 \[2, 3\]"),
    ):
        saved = {name: array + 1 for name, array in as_numpy(GradientMachine(network).state_dict()).items()}
        change(saved)
        with pytest.raises(CheckpointError, match=said):
            GradientMachine(network).load_state_dict(saved)
        assert values(network) == before


def test_a_run_with_shared_layers_goes_on_to_the_same_bits(tmp_path):
    batches = [np.full((2, 3), number, "float32") for number in range(1, 7)]

    def runner(seed, folder):
        network = Siamese(seed)
        optimizer = paddle.optimizer.Adam(0.1, parameters=network.parameters())
        data = DataProvider(batches, 1, collate=lambda examples: examples[0])
        return Runner(Saver(folder, every=2), data, ParameterUpdater(optimizer), GradientMachine(network))

    uncut = runner(0, tmp_path / "uncut")
    uncut.run(passes=2)
    runner(0, tmp_path / "cut").run(steps=4)
    resumed = runner(1, tmp_path / "cut")
    resumed.run(passes=2)
    assert values(resumed[GradientMachine].network) == values(uncut[GradientMachine].network)
