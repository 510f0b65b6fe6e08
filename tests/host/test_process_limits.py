"""Limits of the process that are raised for a while."""

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion.host.process_limits import Raised, depth


class Limit:
    def __init__(self, value):
        self.value = value
        self.raised = Raised(lambda: self.value, self._put)

    def _put(self, value):
        self.value = value


@pytest.mark.parametrize(("wish", "raised"), [(20, 20), (5, 10)])
def test_it_is_raised_and_restored_and_never_lowered(wish, raised):
    limit = Limit(10)
    with limit.raised.to(wish):
        assert limit.value == raised
    assert limit.value == 10
    with pytest.raises(KeyError), limit.raised.to(wish):
        raise KeyError
    assert limit.value == 10


@given(wishes=st.lists(st.integers(1, 30), max_size=8), data=st.data())
def test_in_whatever_order_they_leave_the_highest_wish_counts(wishes, data):
    limit, held = Limit(10), []
    for wish in wishes:
        held.append((wish, ExitStack()))
        held[-1][1].enter_context(limit.raised.to(wish))
        assert limit.value == max(10, *(wish for wish, _ in held), 10)
    while held:
        _, stack = held.pop(data.draw(st.integers(0, len(held) - 1)))
        stack.close()
        assert limit.value == max([10, *(wish for wish, _ in held)])


def test_what_others_set_meanwhile_stays():
    limit = Limit(10)
    with limit.raised.to(20):
        limit.value = 50
    assert limit.value == 50
    with limit.raised.to(60):
        limit.value = 15
        with limit.raised.to(30):
            assert limit.value == 60
        assert limit.value == 60
    assert limit.value == 15


def test_the_depth_is_counted_from_the_caller():
    def further():
        return depth()

    assert further() == depth() + 1
