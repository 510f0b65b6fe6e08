"""Optimizer state that ranks share: who keeps what, the bits of every optimizer, and what is refused."""

import paddle
import pytest

from onion import CompositionError, GradientMachine, HookError, ParameterUpdater, Runner
from onion.distributed import distributed
from onion.distributed.group import Group
from onion.distributed.sharding import Shard, own_gradients, owners
from onion.testing import toy_network
from onion.training.pairing import parameters_of
from tests.abilities import known
from tests.items.learning import OPTIMIZERS, examples, toy_batches
from tests.onions.parts import Network, seed
from tests.toys import bits

OPTIMIZERS = OPTIMIZERS | {
    "adam of many tensors": lambda p: paddle.optimizer.Adam(0.05, parameters=p, use_multi_tensor=True),
    "decay by regularization": lambda p: paddle.optimizer.Momentum(
        0.05, parameters=p, weight_decay=0.1, grad_clip=paddle.nn.ClipGradByNorm(0.1)
    ),
}


@pytest.mark.parametrize("world_size", [1, 2, 4, 8])
def test_ranks_have_about_the_same_in_all(world_size):
    sizes = [100, 3, 70, 3, 70, 30, 30, 1, 1, 50]
    of_each = owners(sizes, world_size)
    held = [
        sum(size for size, owner in zip(sizes, of_each, strict=True) if owner == rank) for rank in range(world_size)
    ]
    assert max(held) <= max(100, 1.01 * sum(sizes) / world_size)


def test_few_parameters_leave_some_ranks_without_any():
    assert owners([5, 5], 4) == [0, 1]


def test_parameters_that_learn_are_shared_evenly_whatever_is_frozen():
    network = Network(hidden=20)
    for each in network.encoder.layers[0].parameters():
        each.stop_gradient = True
    optimizer = OPTIMIZERS["adam"](network.parameters())
    shards = [Shard(optimizer, rank, 2) for rank in range(2)]
    learning = [
        {each.name for each in network.parameters() if not each.stop_gradient and one.has(each)} for one in shards
    ]
    assert sorted(map(len, learning)) == [1, 3]  # the large one, and all others
    assert all(any(one.has(each) for each in network.encoder.layers[0].parameters()) for one in shards)


def made(name):
    """Return a network with a frozen parameter and a layer that no batch uses, and its optimizer."""
    seed(3)
    network = Network()
    network.eval()
    network.unused = paddle.nn.Linear(3, 3)
    network.head.bias.stop_gradient = True
    return network, OPTIMIZERS[name](network.parameters())


def learn(network, batch):
    network.loss(network(batch), batch).backward()


@pytest.mark.parametrize("name", known(OPTIMIZERS))
def test_every_optimizer_has_the_bits_of_one_that_steps_all(name):
    whole, optimizer = made(name)
    ranks = [made(name) for _ in range(3)]
    shards = [Shard(optimizer, rank, 3) for rank, (_, optimizer) in enumerate(ranks)]
    for batch in toy_batches(4, 4):
        batch = {key: paddle.to_tensor(value) for key, value in batch.items()}
        learn(whole, batch)
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
        for (network, own), shard in zip(ranks, shards, strict=True):
            learn(network, batch)
            with own_gradients(own, shard.has):
                own.step()
            own.clear_grad(set_to_zero=False)
        for same in zip(*(network.parameters() for network, _ in ranks), strict=True):
            (kept,) = [each for each, shard in zip(same, shards, strict=True) if shard.has(each)]
            for each in same:
                each.set_value(kept.clone())
    assert all(bits(network) == bits(whole) for network, _ in ranks)
    assert sum(size_of_state(own) for _, own in ranks) == size_of_state(optimizer)


def size_of_state(optimizer):
    return sum(int(each.size) for slot in optimizer._accumulators.values() for each in slot.values())


def test_a_clip_and_groups_are_those_of_before_afterwards_also_after_an_error():
    optimizer = OPTIMIZERS["adamw groups clipped"](Network().parameters())
    before = optimizer._grad_clip, [each["grad_clip"] for each in optimizer._param_groups]
    with pytest.raises(ZeroDivisionError), own_gradients(optimizer, lambda parameter: True):
        raise ZeroDivisionError
    assert (optimizer._grad_clip, [each["grad_clip"] for each in optimizer._param_groups]) == before


class Prodigal(paddle.optimizer.SGD):
    """An optimizer of one's own, which may take a norm over all parameters."""


def test_an_optimizer_that_may_look_at_all_parameters_is_refused():
    network = toy_network()
    updater = ParameterUpdater(Prodigal(0.1, parameters=network.parameters()))
    runner = Runner(examples(), updater, GradientMachine(network))
    distributed(runner)
    with pytest.raises(CompositionError, match=r"its own kind \(Prodigal\).*paddle.optimizer, which update each param"):
        distributed(runner, shard_optimizer=True)


def test_one_process_keeps_all():
    assert not Group(0, 1, 4, None, shards_optimizers=True).shards_optimizers


def test_a_state_in_parts_is_not_taken_for_the_whole():
    network = toy_network()
    updater = ParameterUpdater(OPTIMIZERS["adam"](network.parameters()))
    updater.group = Group(0, 2, 2, None, shards_optimizers=True)
    updater.state_dict()
    updater.group = None
    for use in (updater.state_dict, lambda: Runner(examples(), updater, GradientMachine(network)).run(steps=1)):
        with pytest.raises(HookError, match="is in parts on the ranks since a run with shard_optimizer=True"):
            use()
    assert len(parameters_of(updater.optimizer)) == 2
