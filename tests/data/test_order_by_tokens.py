"""Batches by tokens: everything once, no batch too large, entered anywhere."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.data.order import MAX_WINDOW
from onion.data.order_by_tokens import InOrder, Shuffled, evenly_cut, fitting
from onion.errors import DataError

LONGEST = 40

few = settings(max_examples=80, deadline=None)
lengths_of_any = st.lists(st.integers(1, LONGEST), min_size=1, max_size=300).map(np.array)
tokens_of_any = st.integers(LONGEST, 1000)
seeds = st.integers(0, 2**70)
passes = st.integers(0, 10_000)


def ordered(lengths, tokens, seed=0, shuffle=True, weights=None):
    fit = fitting(np.asarray(lengths), tokens)
    return Shuffled(fit, tokens, seed, weights) if shuffle else InOrder(fit, tokens)


def lists(order, pass_id=0, start=0):
    return [batch.tolist() for batch in order.batches(pass_id, start)]


def many(count=20_000, seed=0):
    """Lengths as those of texts."""
    return np.minimum(512, np.random.default_rng(seed).lognormal(4, 0.8, count).astype(int) + 1)


@few
@given(lengths=lengths_of_any, tokens=tokens_of_any, seed=seeds, pass_id=passes, shuffle=st.booleans())
def test_each_example_comes_once_and_no_batch_has_more_tokens(lengths, tokens, seed, pass_id, shuffle):
    order = ordered(lengths, tokens, seed, shuffle)
    batches = lists(order, pass_id)
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))
    assert all(0 < lengths[batch].sum() <= tokens for batch in batches)
    assert len(batches) == len(order)
    assert batches == lists(ordered(lengths, tokens, seed, shuffle), pass_id)


@few
@given(lengths=lengths_of_any, tokens=tokens_of_any, shuffle=st.booleans(), place=st.floats(0, 1))
def test_a_pass_that_is_entered_anywhere_goes_on_as_it_would_have(lengths, tokens, shuffle, place):
    order = ordered(lengths, tokens, shuffle=shuffle)
    start = round(place * len(order))
    assert lists(order, 3, start) == lists(order, 3)[start:]


@few
@given(
    weights=st.lists(st.integers(0, 9) | st.floats(1e-9, 1e9), min_size=1, max_size=200).filter(any).map(np.array),
    tokens=tokens_of_any,
    pass_id=passes,
    place=st.floats(0, 1),
)
def test_what_is_drawn_by_weight_fits_too(weights, tokens, pass_id, place):
    lengths = np.arange(len(weights)) * 7 % LONGEST + 1
    order = ordered(lengths, tokens, weights=weights.astype(np.float64))
    batches = lists(order, pass_id)
    assert sum(map(len, batches)) == len(lengths)
    assert all(0 < lengths[batch].sum() <= tokens and (weights[batch] > 0).all() for batch in batches)
    assert len(batches) == len(order)
    start = round(place * len(order))
    assert lists(order, pass_id, start) == batches[start:]


def test_batches_of_equal_lengths_are_no_neighbours_in_the_file():
    labels = np.repeat([0, 1], 500)
    for pass_id in range(3):
        shares = [labels[batch].mean() for batch in lists(ordered(np.full(1000, 128), 4096), pass_id)]
        assert 0.2 < min(shares) < max(shares) < 0.8


def test_lengths_of_two_bytes_and_of_eight_give_the_same_batches():
    lengths = many()
    wide = Shuffled(lengths.astype(np.int64), 4096, seed=1)
    assert lists(wide) == lists(ordered(lengths, 4096, seed=1))


def test_examples_are_drawn_as_often_as_their_weights_say():
    weights = np.arange(50) % 5 / 2.0  # on the average 1
    counts = Counter(
        n
        for pass_id in range(100)
        for batch in lists(ordered(range(1, 51), 200, weights=weights), pass_id)
        for n in batch
    )
    drawn = np.array([counts[number] for number in range(50)])
    assert drawn.sum() == 100 * 50
    assert np.abs(drawn - 100 * weights).max() < 5 * np.sqrt(100)  # five times what each share may deviate
    assert len({str(lists(ordered(range(1, 51), 200, weights=weights), pass_id)) for pass_id in range(20)}) == 20


@pytest.mark.parametrize("count", [30, 1000])
def test_orders_of_passes_and_seeds_differ(count):
    lengths = np.arange(count) % 37 + 1
    orders = {str(lists(ordered(lengths, 60, seed), pass_id)) for seed in (0, 1, 2**32) for pass_id in range(5)}
    assert len(orders) == 15


def test_they_stay_the_same_from_release_to_release():
    """A checkpoint written by an older onion or NumPy is resumed in the same order."""
    lengths = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
    assert lists(ordered(lengths, 12, seed=1), 2) == [[0, 10], [11, 3], [8, 1], [9, 4], [2, 6], [7], [5]]
    assert lists(ordered(lengths, 12, shuffle=False), 2) == [[5], [11], [7], [4, 8], [10, 2], [0, 9, 6, 1, 3]]
    weighted = ordered(lengths, 12, seed=1, weights=np.arange(12.0))
    assert lists(weighted, 2) == [[10, 9], [11], [4, 9], [5], [10, 3], [7], [4, 8], [11]]


def test_batches_are_full_and_of_similar_length():
    lengths = many()
    batches = lists(ordered(lengths, 4096))
    tokens = np.array([lengths[batch].sum() for batch in batches])
    assert tokens.mean() > 0.97 * 4096
    assert tokens.min() > 0.85 * 4096
    assert np.mean([np.ptp(lengths[batch]) for batch in batches]) < 12  # 400 in batches cut at random
    in_order = lists(ordered(lengths, 4096, shuffle=False))
    assert len(in_order) < 1.03 * len(batches)
    assert np.mean([np.ptp(lengths[batch]) for batch in in_order]) < 12


def test_batches_of_similar_length_come_in_random_order():
    lengths = many()
    means = [lengths[batch].mean() for batch in lists(ordered(lengths, 4096))]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.2
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.2


def test_pieces_of_a_batch_have_about_as_many_tokens():
    lengths = many(400)
    halves = np.zeros(2)
    for batch in lists(ordered(lengths, 20_000)):
        for number, half in enumerate((batch[: len(batch) // 2], batch[len(batch) // 2 :])):
            halves[number] += lengths[half].sum()
    assert 0.8 < halves[0] / halves[1] < 1.25  # 3.7 if they were sorted, the longest first


def test_an_example_meets_others_in_the_next_pass():
    lengths = many(400)
    batches = [frozenset(batch) for pass_id in range(5) for batch in lists(ordered(lengths, 1024), pass_id)]
    assert len(set(batches)) > 0.9 * len(batches)
    met = set().union(*(batch for batch in batches if 7 in batch))
    assert len(met) > 2 * max(len(batch) for batch in batches if 7 in batch)


def test_an_example_is_equally_likely_in_every_batch():
    order = ordered([3] * 24, 3)
    orders = [lists(order, pass_id) for pass_id in range(480)]
    for number in (0, 23):
        places = Counter(batches.index([number]) for batches in orders)
        assert set(places) == set(range(24))
        assert max(abs(count - 20) for count in places.values()) < 22  # five standard deviations


def test_without_shuffle_the_examples_come_in_windows_of_the_source():
    lengths = many(60_000)
    order = ordered(lengths, 1024, shuffle=False)
    assert lists(order, 0) == lists(order, 9)
    starts = [min(batch) for batch in lists(order)]
    assert starts[0] < starts[2 * MAX_WINDOW] < starts[-1]
    assert min(starts[2 * MAX_WINDOW :]) > 60_000 * MAX_WINDOW // len(starts) // 2


@pytest.mark.parametrize("shuffle", [True, False])
def test_the_smallest_orders(shuffle):
    assert lists(ordered([3], 3, shuffle=shuffle)) == [[0]]
    assert sorted(lists(ordered([3, 3], 3, shuffle=shuffle))) == [[0], [1]]
    assert [sorted(batch) for batch in lists(ordered([3, 3], 6, shuffle=shuffle))] == [[0, 1]]


def test_lengths_of_more_than_two_bytes():
    lengths = np.array([70_000, 3, 65_535, 65_536])
    batches = lists(ordered(lengths, 140_000))
    assert sorted(number for batch in batches for number in batch) == [0, 1, 2, 3]
    assert all(lengths[batch].sum() <= 140_000 for batch in batches)


def test_cuts_are_as_few_as_can_be_and_even():
    assert evenly_cut(np.array([5] * 9), 40) == [0, 5, 9]
    assert evenly_cut(np.array([9, 1, 1, 1]), 10) == [0, 1, 4]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (
            [3, 12, 11],
            r"example 1 \(from 0\) has a length of 12 tokens, more than a batch of tokens_per_batch=10 may have",
        ),
        ([3, 2, 0], r"example 2 \(from 0\) has a length of 0 tokens; it must be 1 or more"),
    ],
)
def test_an_example_that_fits_into_no_batch_is_named(lengths, message):
    with pytest.raises(DataError, match=message):
        fitting(np.array(lengths), 10)


def test_settings_tell_of_other_lengths_and_of_no_other_type_of_them():
    told = [
        ordered(np.array(lengths, kind), 40).settings
        for lengths, kind in (([3, 4], "i8"), ([3, 4], "u1"), ([4, 3], "i8"))
    ]
    assert told[0] == told[1] != told[2]
