import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.errors import DataError
from onion.tasks.data.features.examples import Column, Examples


def made(*texts, **more):
    return [
        {"row": row, "ids": np.array(text, np.int64), **{name: values[row] for name, values in more.items()}}
        for row, text in enumerate(texts)
    ]


def test_a_sequence():
    examples = Examples.of(made([1], [2, 2], [3, 4, 5]), {"cut": 1})
    assert [example["place"] for example in examples] == [0, 1, 2]
    assert [example["ids"].tolist() for example in examples[1:]] == [[2, 2], [3, 4, 5]]
    assert examples[-1]["place"] == 2
    assert examples.lengths.tolist() == [1, 2, 3]
    assert examples.notes == {"cut": 1}
    with pytest.raises(IndexError):
        examples[3]


def test_kinds_of_columns():
    spans = [np.array([[0, 1]]), np.zeros((0, 2), np.int64), np.array([[2, 3], [4, 5]])]
    examples = Examples.of(made([1], [2], [3], value=[0.5, 1.5, 2.5], spans=spans))
    assert [example["value"] for example in examples] == [0.5, 1.5, 2.5]
    assert [example["spans"].tolist() for example in examples] == [[[0, 1]], [], [[2, 3], [4, 5]]]
    assert isinstance(examples[0]["row"], int)
    assert examples.columns["ids"].values.dtype == np.int32
    assert examples.columns["value"].values.dtype == np.float32


@given(st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=5), min_size=1, max_size=8))
def test_arrays_come_back_as_they_were(arrays):
    column = Column.of("x", [np.array(array, np.int64) for array in arrays])
    assert len(column) == len(arrays)
    assert [column[place].tolist() for place in range(len(column))] == arrays


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ([1, 2**31], "'x' of the examples has a number that does not fit into 32 bits"),
        ([1, "a"], "'x' of the examples is int of .*; it must contain numbers"),
        ([None, 1], "'x' of the examples is NoneType of object"),
        ([1, np.array([1])], "'x' of the examples has inconsistent shapes"),
        ([np.zeros((1, 2)), np.zeros(3)], "'x' of the examples has inconsistent shapes"),
        ([np.array([2**40])], "'x' of the examples has a number that does not fit into 32 bits"),
    ],
)
def test_what_no_column_can_hold_is_refused(fields, told):
    with pytest.raises(DataError, match=f"^the field {told}"):
        Column.of("x", fields)


def test_a_fraction_anywhere_makes_all_of_a_column_fractions():
    assert Column.of("x", [1, 0.5]).values.tolist() == [1, 0.5]


def test_examples_have_the_same_fields():
    with pytest.raises(DataError, match="one has row, ids, a, another row, ids"):
        Examples.of([{"row": 0, "ids": np.array([1]), "a": 1}, {"row": 1, "ids": np.array([1])}])
