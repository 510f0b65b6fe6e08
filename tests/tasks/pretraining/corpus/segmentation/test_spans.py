"""Units: whatever is put together, none cuts another, and nothing is lost."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onion.tasks.pretraining.corpus.segmentation.spans import Spans, grown, merged, units_of

some_ranges = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 6)).map(lambda each: (each[0], sum(each))), max_size=8
)


def covered(units):
    return {place for begin, end in units.tolist() for place in range(begin, end)}


def apart_or_nested(one, other):
    return one[1] <= other[0] or other[1] <= one[0] or one[0] <= other[0] <= other[1] <= one[1]


@given(some_ranges)
def test_merged_ranges_are_ascending_and_apart_and_cover_the_same(ranges):
    found = merged(units_of(ranges))
    assert found.dtype == np.int32
    assert covered(found) == covered(units_of(ranges))
    assert (found[:, 0] < found[:, 1]).all()
    assert (found[1:, 0] >= found[:-1, 1]).all()
    for begin, end in ranges:
        assert any(first <= begin and end <= last for first, last in found.tolist())


def test_neighbours_stay_apart():
    assert merged(units_of([(2, 4), (0, 2), (5, 6), (4, 6)])).tolist() == [[0, 2], [2, 4], [4, 6]]


def test_growing_by_hand():
    whole = units_of([(2, 4), (4, 7)])
    ranges = units_of([(0, 2), (1, 3), (3, 5), (5, 6), (6, 9), (8, 9)])
    assert grown(ranges, whole).tolist() == [[0, 2], [1, 4], [2, 7], [4, 7], [4, 9], [8, 9]]
    assert grown(ranges, units_of([])) is ranges


@given(some_ranges, some_ranges, some_ranges)
def test_no_unit_cuts_another(words, phrases, entities):
    given_ranges = [units_of(each) for each in (words, phrases, entities)]
    found = Spans(*given_ranges).unified()
    kinds = found.words, found.phrases, found.entities
    for before, after in zip(given_ranges, kinds, strict=True):
        assert covered(before) <= covered(after)
    for smaller, larger in ((0, 0), (0, 1), (0, 2), (1, 1), (2, 1), (2, 2)):
        for one in kinds[larger].tolist():
            for other in kinds[smaller].tolist():
                assert apart_or_nested(one, other), (one, other)
