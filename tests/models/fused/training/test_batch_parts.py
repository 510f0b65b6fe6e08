"""How the rows of a batch are parted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.models.fused.training.batch_parts import FEWEST, split
from onion.models.packing import Packing


def packing_of(lengths, width=None):
    lengths = np.asarray(lengths)
    return Packing.of(np.arange(width or lengths.max()) < lengths[:, None], 2)


@given(st.lists(st.integers(1, 90), min_size=1, max_size=20), st.integers(1, 5))
def test_parts_hold_every_row_once_and_in_order(lengths, count):
    parts = split(packing_of(lengths, 100), count, None)
    assert 1 <= len(parts) <= count
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == sum(lengths)
    assert [length for part in parts for length in part.packing.mask.sum(axis=1)] == lengths


def test_halves_have_about_as_many_tokens():
    first, second = split(packing_of([90, 15, 15, 15, 15, 15, 15]), 2, None)
    assert (first.stop, second.stop) == (90, 180)


def test_a_part_is_as_wide_as_its_longest_row():
    assert [part.packing.length for part in split(packing_of([90, 30, 30, 30]), 2, None)] == [90, 30]


@pytest.mark.parametrize(("lengths", "parts"), [([FEWEST], 1), ([FEWEST, FEWEST], 2), ([FEWEST, FEWEST - 1], 1)])
def test_small_batches_are_not_parted(lengths, parts):
    assert len(split(packing_of(lengths), 2, None)) == parts


def test_masks_belong_to_seed_and_part():
    def masks(seed):
        return [part.mask([4, 5], 0.5).numpy().tobytes() for part in split(packing_of([90, 90]), 2, seed)]

    assert masks(1) == masks(1)
    assert len({*masks(1), *masks(2)}) == 4


def test_without_a_seed_or_probability_there_is_no_mask():
    assert split(packing_of([5]), 1, None)[0].mask([2], 0.5) is None
    assert split(packing_of([5]), 1, 3)[0].mask([2], 0) is None
