"""The border between two batches."""

from operator import length_hint

import pytest

from onion import State
from onion.data.batch_boundary import BatchBoundary


class Slow:
    """Batches that are ready after some looks."""

    def __init__(self, looks):
        self.looks = list(looks)

    def ready(self, timeout):
        self.looks[0] -= 1
        return self.looks[0] < 0

    def __next__(self):
        if not self.looks:
            raise StopIteration
        self.looks.pop(0)
        return "batch"

    def __iter__(self):
        return self

    def __length_hint__(self):
        return len(self.looks)


def test_there_is_a_look_before_each_batch_that_the_runner_draws():
    state, looks = State(), []
    border = BatchBoundary(iter("abcd"), state, lambda state: looks.append(state.batch_id))
    assert next(border) == "a"
    assert next(border) == "b"  # for the batch under way, as Accumulate does
    state.batch_id = 1
    assert next(border) == "c"
    assert looks == [0, 1]
    assert border.given == 3


def test_while_the_data_are_slow_there_are_more():
    state, looks = State(), []
    border = BatchBoundary(Slow([0, 3]), state, lambda state: looks.append(state.batch_id))
    next(border)
    state.batch_id = 1
    next(border)
    assert looks == [0, 1, 1, 1, 1]


def test_a_stop_ends_the_wait():
    state = State()
    border = BatchBoundary(Slow([10**9]), state, lambda state: state.stop("enough"))
    with pytest.raises(StopIteration):
        next(border)
    assert border.given == 0


def test_a_border_around_a_border_waits_too():
    state, looks = State(), []
    inner = BatchBoundary(Slow([2]), state, lambda state: None)
    outer = BatchBoundary(inner, state, lambda state: looks.append(1))
    next(outer)
    assert len(looks) == 3
    assert BatchBoundary(iter("a"), state, print).ready(0.0)


def test_the_length_is_that_of_the_data():
    assert length_hint(BatchBoundary(iter([1, 2]), State(), print), -1) == 2
    assert length_hint(BatchBoundary((each for each in [1, 2]), State(), print), -1) == 1
