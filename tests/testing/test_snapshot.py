"""Snapshots: they keep what was there, and tell to the bit where another one differs."""

import enum
import threading
from collections import deque
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import paddle
import pytest

from onion import Runner
from onion.testing import Batches, Recorder, toy_network
from onion.testing.snapshot import UNSEEN, differences, opaque, snapshot, written


def found(one, other):
    return [(written(each.path), *each.shown()) for each in differences(snapshot(one), snapshot(other))]


def differ(one, other):
    return bool(found(one, other))


def test_it_stays_what_it_was():
    array, nested = np.zeros(3), {"a": [1, {2}]}
    tensor = paddle.zeros([2])
    holder = SimpleNamespace(array=array, nested=nested, tensor=tensor, queue=deque([1]))
    before = snapshot(holder)
    array[0], tensor[0] = 1, 1
    nested["a"][1].add(3)
    holder.queue.append(2)
    assert [written(each.path) for each in differences(before, snapshot(holder))] == [
        "array",
        "nested['a'][1]",
        "tensor",
        "queue",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0),
        (1, 2),
        (None, 0),
        ("a", "b"),
        (b"a", b"b"),
        ([1], [1, 1]),
        ({1: 2}, {2: 2}),
        ({1}, {1, 2}),
        (timedelta(1), timedelta(2)),
        (np.float32(1), np.float32(2)),
        (np.zeros(2, np.float32), np.zeros(2, np.float64)),
        (np.zeros(2), np.zeros([1, 2])),
        (np.array([0.0]), np.array([-0.0])),
        (np.array([None, "a"]), np.array([None, "b"])),
        (paddle.zeros([2]), paddle.ones([2])),
        (np.random.default_rng(1), np.random.default_rng(2)),
        (toy_network(seed=1), toy_network(seed=2)),
        (SimpleNamespace(a=1), SimpleNamespace(a=1, b=2)),
        (iter([1]), None),
        (enum.Enum("Two", "a b").a, enum.Enum("Two", "a b").b),
    ],
)
def test_what_differs(one, other):
    assert differ(one, other)
    assert differ(other, one)
    assert not differ(one, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (3, 3.0),
        (float("nan"), float("nan")),
        ((1, [2]), [1, (2,)]),  # as JSON gives it back
        (deque("ab"), ["a", "b"]),
        (paddle.to_tensor(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (paddle.ones([2]), np.ones(2, np.float32)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (toy_network(seed=1), toy_network(seed=1)),
        (np.random.default_rng(1), np.random.default_rng(1)),
        (len, max),
        (lambda: 1, None),
        (threading.Lock(), None),
        (threading.current_thread(), 3),
        (Recorder("a"), Recorder("b")),
        (Runner(Batches(1)), Runner(Batches(2))),
        (paddle.optimizer.SGD(0.1, parameters=toy_network().parameters()), None),
        (int, float),
    ],
)
def test_what_does_not(one, other):
    assert not differ(one, other)
    assert not differ(other, one)


def test_objects_that_live_for_a_moment_are_not_mistaken_for_each_other():
    """A state that a generator makes when it is asked for may get the address of one that is gone."""
    many = [np.random.default_rng(seed) for seed in range(50)]
    other = [np.random.default_rng(seed) for seed in range(50)]
    assert not differ(many, other)
    other[49].random()
    assert found(many, other)[0][0].startswith("[49]")


def test_long_values_are_shown_around_the_first_difference_arrays_by_a_digest():
    one, other = list(range(300)), [*range(299), 7, 8]
    ((where, here, there),) = found(one, other)
    assert where == ""
    assert here.startswith("...")
    assert here.endswith("298, 299]")
    assert there.endswith("298, 7, 8]")
    assert max(len(here), len(there)) < 80
    assert found("a" * 200, "b" * 200)[0][1].endswith("...")
    ((_, here, there),) = found(np.array([1, 2, 3, 4]), np.array([1, 2, 3, 5]))
    assert here.startswith("int64 [4] 1, 2, 3, ... (digest ")
    assert here != there


def test_iterators_are_named_a_cycle_ends_and_what_is_met_twice_is_told_twice():
    taken = snapshot({"a": [iter("x")], "b": SimpleNamespace(c=iter("y"), d=1)})
    assert [written(path) for path in opaque(taken)] == ["['a'][0]", "['b'].c"]

    def knot(value):
        one, other = SimpleNamespace(value=value), SimpleNamespace()
        one.other, other.one = other, one
        return [one, other]

    assert not differ(knot(1), knot(1))
    assert found(knot(1), knot(2)) == [("[0].value", "1", "2")]
    loop = SimpleNamespace()
    loop.me = loop
    assert snapshot(loop).held == {"me": UNSEEN}
    shared = [1]
    assert found([shared, shared], [[1], [2]]) == [("[1][0]", "1", "2")]
