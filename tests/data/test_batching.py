"""Collating and padding."""

from collections import namedtuple
from fractions import Fraction

import numpy as np
import paddle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.data import collate, pad
from onion.errors import DataError
from tests.data.comparison import assert_same
from tests.fresh_python import python

Pair = namedtuple("Pair", "x y")


f32, i64 = np.float32, np.int64


@pytest.mark.parametrize(
    ("examples", "batch"),
    [
        ([1, 2], np.array([1, 2], i64)),
        ([1.5, 2], np.array([1.5, 2], f32)),
        ([True, False], np.array([True, False])),
        ([np.float64(1), np.float64(2)], np.array([1, 2], np.float64)),
        ([np.int8(1), np.int8(2)], np.array([1, 2], np.int8)),
        ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]], i64)),
        ([[0.5], [1.5]], np.array([[0.5], [1.5]], f32)),
        ([np.zeros((2, 3)), np.ones((2, 3))], np.stack([np.zeros((2, 3)), np.ones((2, 3))])),
        ([np.zeros(2, f32)], np.zeros((1, 2), f32)),
        (["a", "b"], ["a", "b"]),
        ([None, None], [None, None]),
        ([["a", "b"], ["c"]], [["a", "b"], ["c"]]),
        ([Fraction(1, 2)], [Fraction(1, 2)]),
        ([(1, "a"), (2, "b")], (np.array([1, 2], i64), ["a", "b"])),
        ([Pair(1, 2), Pair(3, 4)], Pair(np.array([1, 3], i64), np.array([2, 4], i64))),
        (
            [{"x": 1, "y": {"z": (1.0,)}}, {"y": {"z": (2.0,)}, "x": 2}],
            {"x": np.array([1, 2], i64), "y": {"z": (np.array([1, 2], f32),)}},
        ),
    ],
)
def test_collate(examples, batch):
    assert_same(collate(examples), batch)


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([np.zeros(2), np.zeros(3)], "the examples cannot be stacked: one has the shape [2], another [3]"),
        ([[1], [1, 2]], "one has the shape [1], another [2]"),
        ([[[1], [1, 2]]], "a list of lists of unequal length"),
        ([1, [1]], "one has the shape [], another [1]"),
        ([{"ids": [1]}, {"ids": [1, 2]}], "the examples' field ['ids'] cannot be stacked"),
        ([{"a": (1, [1])}, {"a": (1, [])}], "the examples' field ['a'][1] cannot be stacked"),
        ([{"a": 1}, {"b": 1}], "one has the fields a, another b"),
        ([{"a": 1}, 5], "one has the fields a, another int"),
        ([(1, 2), (1,)], "one is a tuple of 2, another 1"),
        ([(1, 2), "ab"], "one is a tuple of 2, another str"),
    ],
)
def test_what_cannot_be_stacked(examples, message):
    with pytest.raises(DataError) as caught:
        collate(examples)
    assert message in str(caught.value)
    assert str(caught.value).endswith("make them alike, or give a collate= of your own")


def test_paddle_tensors_are_stacked_by_paddle():
    batch = collate([{"x": paddle.ones([2])}, {"x": paddle.zeros([2])}])
    assert isinstance(batch["x"], paddle.Tensor)
    np.testing.assert_array_equal(batch["x"].numpy(), [[1, 1], [0, 0]])
    with pytest.raises(DataError, match=r"one has the shape \[2\], another \[3\]"):
        collate([paddle.ones([2]), paddle.ones([3])])


def test_the_data_package_does_not_load_paddle():
    code = (
        "import onion.data; onion.data.collate([{'a': 1, 'b': object()}]); import sys; print('paddle' in sys.modules)"
    )
    assert python(code)[0] == "False"


def test_pad():
    assert_same(pad([[5, 6, 7], [8]], value=-1), np.array([[5, 6, 7], [8, -1, -1]], i64))
    assert_same(pad([np.array([1], np.int32), np.array([2, 3])]), np.array([[1, 0], [2, 3]], np.int32))
    assert_same(pad([[0.5]]), np.array([[0.5]], f32))
    assert_same(pad([[1]], dtype="float64"), np.array([[1]], np.float64))
    assert pad([[], []]).shape == (2, 0)


@given(rows=st.lists(st.lists(st.integers(-9, 9), max_size=12), min_size=1, max_size=8))
def test_pad_keeps_every_number_in_its_place(rows):
    padded = pad(rows, value=99, dtype=i64)
    assert padded.shape == (len(rows), max(map(len, rows)))
    assert [[n for n in row if n != 99] for row in padded.tolist()] == rows
