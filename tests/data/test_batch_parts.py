"""One batch -> pieces, and back."""

from collections import namedtuple

import numpy as np
import paddle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion import DataError
from onion.data.batch_parts import examples, join, split
from tests.data.comparison import assert_same

Pair = namedtuple("Pair", ["left", "right"])


def batch_of(n):
    return {
        "x": np.arange(n * 3, dtype="float32").reshape(n, 3),
        "tensor": paddle.arange(n),
        "texts": [f"text {i}" for i in range(n)],
        "pair": Pair(np.arange(n), (np.arange(n) * 2, None)),
        "temperature": 0.5,
        "task": "mrc",
        "scalar": np.float32(3),
        "no axis": np.array(4),
    }


@pytest.mark.parametrize("batch", [batch_of(3), np.zeros([3, 2]), paddle.zeros([3]), [1, 2, 3], (np.zeros(3), "a")])
def test_examples_are_the_length_that_all_have_in_common(batch):
    assert examples(batch) == 3


@pytest.mark.parametrize(
    ("batch", "told"),
    [
        ({"ids": np.zeros(7), "labels": np.zeros(2)}, r"\['ids'\] has 7, \['labels'\] has 2"),
        ({"pair": (np.zeros(1), [1, 2])}, r"\['pair'\]\[0\] has 1, \['pair'\]\[1\] has 2"),
        *((none, "nothing has a length") for none in ({"temperature": 0.5}, 7, "seven", None, np.array(1))),
    ],
)
def test_a_batch_that_does_not_tell_is_refused_with_the_lengths(batch, told):
    with pytest.raises(DataError, match=f"cannot determine how many examples the batch has: {told}"):
        examples(batch)
    with pytest.raises(DataError, match=told):
        split(batch, 1)


def test_pieces_cut_what_has_the_length_and_share_the_rest():
    first, second = split(batch_of(5), 3)
    assert (examples(first), examples(second)) == (3, 2)
    assert second["x"].tolist() == [[9, 10, 11], [12, 13, 14]]
    assert second["tensor"].tolist() == [3, 4]
    assert second["texts"] == ["text 3", "text 4"]
    assert isinstance(second["pair"], Pair)
    assert second["pair"].right[0].tolist() == [6, 8]
    assert second["pair"].right[1] is None
    assert (second["temperature"], second["task"]) == (0.5, "mrc")
    batch = np.zeros([4, 2])
    assert all(np.shares_memory(piece, batch) for piece in split(batch, 2))


@given(n=st.integers(1, 9), size=st.integers(1, 12))
@settings(max_examples=40)
def test_pieces_joined_are_the_batch(n, size):
    batch = batch_of(n)
    parts = split(batch, size)
    assert [examples(part) for part in parts] == [size] * (n // size) + [n % size] * (n % size > 0)
    assert_same(join(parts), batch)


def test_of_what_cannot_be_joined_the_last_is_taken():
    assert join([paddle.to_tensor(1.0), paddle.to_tensor(2.0)]) == 2
    assert join([None, None]) is None
