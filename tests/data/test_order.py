"""Orders: permutations that depend on their arguments only, and batches in which everything stands once."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.data import batches_in_order, bucketed, order, shuffled

few = settings(max_examples=60)
sizes = st.integers(0, 500)
seeds = st.integers(0, 2**70)
passes = st.integers(0, 10_000)


@few
@given(n=sizes, seed=seeds, pass_id=passes)
def test_shuffled_is_a_permutation_and_a_function_of_its_arguments(n, seed, pass_id):
    first = shuffled(n, seed, pass_id)
    assert sorted(first.tolist()) == list(range(n))
    assert first.dtype == np.int64
    np.testing.assert_array_equal(first, shuffled(n, seed, pass_id))


def test_shuffled_stays_the_same_from_release_to_release():
    """A checkpoint written by an older onion or NumPy is resumed in the same order."""
    assert shuffled(10, seed=0, pass_id=0).tolist() == [7, 6, 8, 3, 2, 4, 1, 5, 0, 9]
    assert shuffled(10, seed=0, pass_id=1).tolist() == [4, 6, 3, 5, 2, 9, 1, 0, 7, 8]


@few
@given(bits=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5), max_size=200))
def test_equal_numbers_stay_in_their_order(bits):
    """Whatever algorithm sorts them, on whatever processor."""
    assert order._sorting(np.array(bits, np.uint64)).tolist() == sorted(range(len(bits)), key=bits.__getitem__)


def test_orders_of_passes_and_seeds_differ_and_every_place_is_equally_likely():
    orders = {tuple(shuffled(50, seed, pass_id)) for seed in (0, 1, 2**32) for pass_id in range(10)}
    assert len(orders) == 30
    counts = np.zeros((5, 5))
    for pass_id in range(2000):
        counts[np.arange(5), shuffled(5, 0, pass_id)] += 1
    assert np.abs(counts - 400).max() < 90  # five standard deviations


def test_global_generators_are_neither_read_nor_moved():
    random.seed(1)
    np.random.seed(1)
    state = random.getstate(), np.random.get_state()[1].tolist()
    first = shuffled(20, 3, 4), bucketed(range(20), 4, 3, 4)
    assert state == (random.getstate(), np.random.get_state()[1].tolist())
    np.random.seed(2)
    np.testing.assert_array_equal(first[0], shuffled(20, 3, 4))
    np.testing.assert_array_equal(first[1], bucketed(range(20), 4, 3, 4))


@few
@given(n=sizes, batch_size=st.integers(1, 60), drop_last=st.booleans())
def test_batches_in_order(n, batch_size, drop_last):
    batches = batches_in_order(n, batch_size, drop_last)
    kept = n // batch_size * batch_size if drop_last else n
    assert [i for batch in batches for i in batch] == list(range(kept))
    assert all(len(batch) == batch_size for batch in batches[:-1])


@few
@given(
    lengths=st.lists(st.integers(0, 30), max_size=400),
    batch_size=st.integers(1, 40),
    seed=seeds,
    pass_id=passes,
    drop_last=st.booleans(),
    shuffle=st.booleans(),
)
def test_bucketed_has_everything_once(lengths, batch_size, seed, pass_id, drop_last, shuffle):
    batches = bucketed(lengths, batch_size, seed, pass_id, drop_last, shuffle)
    seen = [i for batch in batches for i in batch.tolist()]
    assert len(seen) == len(set(seen)) == (len(lengths) // batch_size * batch_size if drop_last else len(lengths))
    assert set(seen) <= set(range(len(lengths)))
    short = [len(batch) for batch in batches if len(batch) != batch_size]
    assert len(short) <= (0 if drop_last else 1)


@few
@given(seed=seeds, shuffle=st.booleans())
def test_bucketed_sorts_each_window_by_length(seed, shuffle):
    lengths = np.arange(2 * order.MAX_WINDOW * 4) % 97
    batches = bucketed(lengths, 4, seed, shuffle=shuffle)
    spread = [np.ptp(lengths[batch]) for batch in batches]
    assert np.mean(spread) < 2  # 58 in batches cut at random


def test_bucketed_without_shuffle_is_the_same_in_every_pass():
    for pass_id in (0, 7):
        batches = bucketed([5, 1, 4, 1, 3, 9], 2, pass_id=pass_id, shuffle=False)
        assert [batch.tolist() for batch in batches] == [[1, 3], [4, 2], [0, 5]]


@pytest.mark.parametrize("lengths", [[7] * 40, range(40)], ids=["equal", "different"])
def test_few_examples_meet_others_in_the_next_pass(lengths):
    """Different lengths that are sorted as one window would make the same batches in every pass."""
    met = {frozenset(batch.tolist()) for pass_id in range(5) for batch in bucketed(lengths, 4, 0, pass_id)}
    assert len(met) > 45  # of 50


def test_the_order_of_the_batches_is_not_that_of_their_lengths():
    lengths = np.arange(400)
    means = [lengths[batch].mean() for batch in bucketed(lengths, 4)]
    assert abs(np.corrcoef(means, np.arange(100))[0, 1]) < 0.3


def test_drop_last_does_not_always_drop_the_longest():
    passes = [bucketed(range(11), 5, 0, pass_id, drop_last=True) for pass_id in range(40)]
    assert len({({*range(11)} - {*np.concatenate(batches)}).pop() for batches in passes}) > 5


@pytest.mark.parametrize("n", [0, 1])
def test_the_smallest_orders(n):
    assert [batch.tolist() for batch in bucketed([3] * n, 4)] == [[0]][:n]
    assert shuffled(n, 0, 0).tolist() == [0][:n]
