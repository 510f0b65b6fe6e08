"""Permutations place by place: each place once, any order equally likely, the same for ever."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.data.permutation import mixed, permuted, uniform


def words(*values):
    return np.array(values, np.uint64)


def row(size, key):
    return permuted(np.arange(size, dtype=np.uint64), np.full(size, size, np.uint64), np.full(size, key, np.uint64))


@settings(max_examples=60)
@given(size=st.integers(1, 400), key=st.integers(0, 2**64 - 1))
def test_each_place_goes_to_another_one(size, key):
    assert sorted(row(size, key).tolist()) == list(range(size))


@settings(max_examples=60)
@given(wanted=st.lists(st.tuples(st.integers(1, 50), st.integers(0, 2**64 - 1), st.integers(0, 49)), min_size=1))
def test_places_of_several_permutations_are_those_of_each(wanted):
    sizes, keys, places = (words(*column) for column in zip(*wanted, strict=True))
    places = places % sizes
    expected = [row(int(size), int(key))[int(place)] for size, key, place in zip(sizes, keys, places, strict=True)]
    assert permuted(places, sizes, keys).tolist() == expected


def test_they_stay_the_same_from_release_to_release():
    """A checkpoint written by an older onion is resumed in the same order."""
    assert row(10, 0).tolist() == [9, 6, 4, 2, 1, 0, 7, 5, 8, 3]
    assert row(7, 2**64 - 1).tolist() == [6, 1, 0, 5, 4, 2, 3]
    assert mixed(words(0)).tolist() == [0xE220A8397B1DCDAF]  # the first number of SplitMix64 with the seed 0


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_order_is_equally_likely(size):
    many = 24_000
    keys = mixed(np.arange(many, dtype=np.uint64))
    places = [permuted(np.full(many, at, np.uint64), np.full(many, size, np.uint64), keys) for at in range(size)]
    _, counts = np.unique(np.stack(places), axis=1, return_counts=True)
    orders = {2: 2, 3: 6, 4: 24}[size]
    assert len(counts) == orders
    assert np.abs(counts - many / orders).max() < 5 * np.sqrt(many / orders)  # five standard deviations


def test_uniform_numbers_are_from_0_and_below_1():
    assert uniform(words(0, 2**63, 2**64 - 1)).tolist() == [0.0, 0.5, 1 - 2.0**-53]
