"""Sums of tensors: the tree has one order, and what is flattened comes back."""

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
