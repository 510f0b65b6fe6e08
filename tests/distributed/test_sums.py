"""Sums of tensors: the tree has one order, and what is flattened comes back."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from queue import Queue

import numpy as np
import pytest

from onion.device import paddle
from onion.distributed import sums


def tensors(*values):
    return [paddle().to_tensor(np.asarray(value, "float32")) for value in values]


@pytest.mark.parametrize("pieces", [1, 2, 4, 8])
def test_neighbours_are_added_first(pieces):
    values = np.random.default_rng(0).normal(size=pieces).astype("float32") * 10.0 ** np.arange(pieces)
    tree = sums.TreeSum()
    for value in values:
        tree.add(tensors([value]))
    (found,) = tree.result(0, 1)
    level = [np.float32(value) for value in values]
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2], strict=True)]
    assert found.item() == level[0]


def test_what_is_flattened_comes_back_in_its_shapes():
    given = tensors([[1, 2], [3, 4]], 5, [6])
    found = sums.parts(sums.flat(given), given)
    assert [each.numpy().tolist() for each in found] == [[[1, 2], [3, 4]], 5, [6]]
    (alone,) = sums.parts(sums.flat(given[:1]), given[:1])
    assert alone.numpy().tolist() == [[1, 2], [3, 4]]


def test_buckets_have_one_type_and_a_limit(monkeypatch):
    monkeypatch.setattr(sums, "BUCKET", 8)
    given = [*tensors([1], [2], [3], [4, 5, 6]), paddle().to_tensor([7]), *tensors([8])]
    assert [[each.numpy().tolist() for each in group] for group in sums.buckets(given)] == [
        [[1], [2]], [[3]], [[4, 5, 6]], [[7]], [[8]],
    ]  # fmt: skip


@pytest.mark.parametrize("size", [3, 4, 9, 1000])
@pytest.mark.parametrize("world_size", [1, 2, 4, 8])
def test_halves_come_to_the_bits_of_the_whole_tree(world_size, size, monkeypatch):
    monkeypatch.setattr(sums, "HALVED", 4)
    scales = 10.0 ** np.arange(world_size)[:, None]
    values = (np.random.default_rng(0).normal(size=(world_size, size)) * scales).astype("float32")
    wires = {pair: Queue() for pair in permutations(range(world_size), 2)}
    sent = [0] * world_size
    here = threading.local()

    def send(tensor, other):
        sent[here.rank] += int(tensor.size)
        wires[here.rank, other].put(tensor.numpy())

    def receive(tensor, other):
        tensor.set_value(wires[other, here.rank].get())

    def reduce(rank):
        here.rank = rank
        return sums.tree_reduced(*tensors(values[rank]), rank, world_size).numpy()

    monkeypatch.setattr(paddle().distributed, "send", send)
    monkeypatch.setattr(paddle().distributed, "recv", receive)
    with ThreadPoolExecutor(world_size) as ranks:
        found = [*ranks.map(reduce, range(world_size))]
    level = [*values]
    while len(level) > 1:
        level = [a + b for a, b in zip(level[::2], level[1::2], strict=True)]
    assert {each.tobytes() for each in found} == {level[0].tobytes()}
    if size == 1000:
        assert max(sent) <= 2 * (world_size - 1) / world_size * size + 2 * world_size
