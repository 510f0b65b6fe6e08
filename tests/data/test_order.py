"""Orders: permutations that depend on their arguments only, and batches in which everything stands once."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.data import balanced, batches_in_order, bucketed, buffered, order, shuffled, weighted

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
    assert weighted(np.arange(6), seed=0, pass_id=0).tolist() == [5, 5, 3, 5, 5, 2]
    assert list(buffered(range(12), 4, seed=0, pass_id=0)) == [1, 4, 2, 0, 7, 6, 8, 10, 3, 11, 9, 5]


@few
@given(counts=st.lists(st.integers(0, 40), max_size=5), seed=seeds, pass_id=passes)
def test_interleaved_has_each_number_as_often_as_it_is_asked_for(counts, seed, pass_id):
    first = order.interleaved(counts, seed, pass_id)
    assert [first.tolist().count(number) for number in range(len(counts))] == counts
    assert first.dtype == np.int64
    np.testing.assert_array_equal(first, order.interleaved(counts, seed, pass_id))


def test_what_is_interleaved_is_mixed_otherwise_in_each_pass_and_not_as_examples_are():
    ones = [order.interleaved([30, 30], 1, pass_id).tolist() for pass_id in range(3)]
    assert len({*map(tuple, ones)}) == 3
    assert ones[0] != np.repeat([0, 1], 30)[shuffled(60, 1, 0)].tolist()
    assert order.interleaved([3, 4], seed=0, pass_id=0).tolist() == [0, 0, 1, 1, 0, 1, 1]  # in every release


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
    first = shuffled(20, 3, 4), bucketed(range(20), 4, 3, 4), weighted(np.ones(9), 3, 4), [*buffered(range(9), 4, 3, 4)]
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


# -- with replacement --------------------------------------------------------------------------------------------------


def test_each_label_is_drawn_equally_often_whatever_its_share():
    labels = np.array(["ham"] * 900 + ["spam"] * 90 + ["eggs"] * 10)
    drawn = np.concatenate([weighted(balanced(labels), 3, pass_id) for pass_id in range(30)])
    assert drawn.dtype == np.int64
    assert len(drawn) == 30_000
    for label in ("ham", "spam", "eggs"):
        assert abs((labels[drawn] == label).sum() - 10_000) < 5 * np.sqrt(30_000 * 2 / 9)  # five standard deviations
    assert len(np.unique(drawn)) > 990  # of 1000: each example has its share of its label's draws


@few
@given(
    weights=st.lists(st.integers(0, 9) | st.floats(1e-9, 1e9), min_size=1, max_size=50).filter(any),
    seed=seeds,
    pass_id=passes,
)
def test_weighted_draws_no_example_of_weight_0_and_is_a_function_of_its_arguments(weights, seed, pass_id):
    weights = np.array(weights, np.float64)
    drawn = weighted(weights, seed, pass_id)
    assert len(drawn) == len(weights)
    assert (weights[drawn] > 0).all()
    np.testing.assert_array_equal(drawn, weighted(weights, seed, pass_id))


def test_draws_are_in_proportion_to_the_weights_and_differ_between_passes_and_seeds():
    drawn = np.concatenate([weighted(np.array([1.0, 0.0, 3.0]), 0, pass_id) for pass_id in range(4000)])
    assert abs((drawn == 2).sum() - 9000) < 5 * np.sqrt(12_000 * 3 / 16)
    assert len({tuple(weighted(np.ones(50), seed, pass_id)) for seed in (0, 1) for pass_id in range(5)}) == 10


# -- a shuffle buffer --------------------------------------------------------------------------------------------------


@few
@given(n=sizes, size=st.integers(1, 600), seed=seeds, pass_id=passes)
def test_a_buffer_gives_each_example_once_and_holds_no_more_than_its_size(n, size, seed, pass_id):
    read, given = [], []
    for example in buffered((read.append(i) or i for i in range(n)), size, seed, pass_id):
        assert len(read) - len(given) <= size + 1  # the one that takes the place of the one that is given
        given.append(example)
    assert sorted(given) == list(range(n))
    assert given == list(buffered(range(n), size, seed, pass_id))
    assert all(place > example - size for place, example in enumerate(given))


def test_a_buffer_of_one_changes_nothing_and_a_large_one_is_a_permutation():
    assert list(buffered(range(20), 1, 0, 0)) == list(range(20))
    counts = np.zeros((5, 5))
    for pass_id in range(2000):
        counts[np.arange(5), list(buffered(range(5), 9, 0, pass_id))] += 1
    assert np.abs(counts - 400).max() < 90


def test_orders_out_of_a_buffer_differ_between_passes_and_seeds():
    orders = {tuple(buffered(range(50), 8, seed, pass_id)) for seed in (0, 1) for pass_id in range(10)}
    assert len(orders) == 20
