"""BatchAssembler: what a batch takes from the source depends on the samples only."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.data.batching import collate
from onion.online.stream.batch_assembler import BatchAssembler, describe
from tests.online.toys import Line


def refuse_negative(number):
    if number < 0:
        raise ValueError(f"{number} is below 0")
    return number


def assembled(numbers, n, reads=None):
    """Read all samples, in portions, then take batches of n."""
    assembler = BatchAssembler(Line(numbers), refuse_negative, list)
    for lot in reads or [max(1, len(numbers))]:
        assembler.more(lot, 0)
    found = []
    while assembler.good:
        found.append(assembler.take(min(n, assembler.good)))
    return found, assembler


def test_a_rejected_sample_belongs_to_the_batch_of_the_next_good_one():
    found, assembler = assembled([1, -2, 3, -4, -5, 6, -7], 2)
    assert [each.batch for each in found] == [[1, 3], [6]]
    assert [[rejected.sample.data for rejected in each.rejected] for each in found] == [[-2], [-4, -5]]
    assert [each.position for each in found] == ["3", "6"]
    assert found[0].rejected[0].reason == "ValueError: -2 is below 0"
    assert assembler.overdue == 1
    assert assembler.skip(1).position == "7"
    assert assembler.overdue == 0


@given(
    st.lists(st.integers(-3, 9), max_size=30),
    st.integers(1, 5),
    st.lists(st.integers(1, 7), min_size=30, max_size=30),
)
def test_batches_do_not_depend_on_how_samples_were_read(numbers, n, reads):
    at_once, in_portions = assembled(numbers, n)[0], assembled(numbers, n, reads)[0]
    assert at_once == in_portions
    assert [number for each in at_once for number in each.batch] == [number for number in numbers if number >= 0]


def test_age_counts_from_the_first_good_sample():
    assembler = BatchAssembler(Line([-1, 2]), refuse_negative, list)
    assembler.more(1, 0)
    assert assembler.age == 0.0
    assembler.more(1, 0)
    assert assembler.age > 0.0
    assembler.take(1)
    assert assembler.age == 0.0


def arrays(*lengths):
    return [{"x": np.zeros(length, "float32")} for length in lengths]


@pytest.mark.parametrize(
    ("lengths", "kept"), [((3, 3, 2, 3), 3), ((2, 3, 3, 3), 3), ((3, 3, 3, 2), 3), ((2, 2, 3, 3, 3), 3)]
)
def test_in_the_first_batch_the_majority_decides_what_collates(lengths, kept):
    assembler = BatchAssembler(Line(arrays(*lengths)), None, collate)
    assembler.more(9, 0)
    assert assembler.take(len(lengths)) is None
    assert assembler.good == kept
    assert assembler.take(kept).batch["x"].shape == (kept, 3)


def test_later_the_previous_batch_decides():
    assembler = BatchAssembler(Line(arrays(3, 2, 2, 2, 3)), None, collate)
    assembler.more(9, 0)
    assembler.take(1)
    assert assembler.take(4) is None
    assert assembler.good == 1
    taken = assembler.take(1)
    assert (len(taken.rejected), taken.position) == (3, "5")


def test_examples_that_do_not_collate_alone_are_all_rejected():
    def breaks(examples):
        raise TypeError("no")

    assembler = BatchAssembler(Line([1, 2]), None, breaks)
    assembler.more(2, 0)
    assert assembler.take(2) is None
    assert assembler.good == 0


def test_if_all_collate_two_by_two_the_error_is_of_collate():
    def breaks(examples):
        if len(examples) > 2:
            raise TypeError("no")
        return examples

    assembler = BatchAssembler(Line([1, 2, 3]), None, breaks)
    assembler.more(3, 0)
    with pytest.raises(TypeError, match="no"):
        assembler.take(3)


def test_a_reason_is_short():
    assert describe(ValueError("x" * 10_000)) == "ValueError: " + "x" * 488
