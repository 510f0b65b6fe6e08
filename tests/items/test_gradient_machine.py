"""GradientMachine: forward, cost and backward, to the bit what a loop written by hand computes."""

import numpy as np
import paddle
import pytest

from onion import CheckpointError, CompositionError, DataProvider, GradientMachine, ParameterUpdater, Runner, State
from onion.testing import Batches, toy_examples, toy_network


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
            network.cost(network(batch), batch).backward()
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


def test_outputs_and_cost_are_left_on_the_state_and_the_batch_stays_as_it_was():
    network, batch = toy_network(), one_batch()

    state = Runner(Batches([batch]), GradientMachine(network)).run(passes=1)

    outputs = network({"x": paddle.to_tensor(batch["x"])})
    assert (state.outputs == outputs).all()
    assert float(state.cost) == float(((outputs - 1) ** 2).mean())
    assert network.linear.weight.grad is not None


def test_the_batch_on_the_state_stays_numpy():
    batch = one_batch()
    state = State(batch=batch)
    GradientMachine(toy_network()).on_batch(state)
    assert state.batch is batch
    assert isinstance(batch["x"], np.ndarray)


def test_a_cost_function_takes_the_place_of_the_networks_own():
    state = Runner(Batches([one_batch()]), GradientMachine(toy_network(), cost=lambda o, b: (o * 0 + 7).mean())).run(1)
    assert float(state.cost) == 7


def test_gradients_of_two_machines_on_one_network_add_up():
    once, twice = toy_network(), toy_network()
    Runner(Batches([one_batch()]), GradientMachine(once)).run(1)
    Runner(Batches([one_batch()]), GradientMachine(twice), GradientMachine(twice)).run(1)
    assert (twice.linear.weight.grad == 2 * once.linear.weight.grad).all()


def test_a_network_without_cost_is_refused_with_both_remedies():
    with pytest.raises(CompositionError, match=r"give Linear a method cost.*or pass GradientMachine\(network, cost="):
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
        return GradientMachine(network, cost=lambda o, b: o.mean())

    saved = machine(one).state_dict()
    assert set(saved) == {"0.weight", "0.bias", "1.weight", "1.bias", "1._mean", "1._variance"}
    machine(other).load_state_dict({name: tensor.numpy() for name, tensor in saved.items()})
    assert values(one) == values(other)


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
