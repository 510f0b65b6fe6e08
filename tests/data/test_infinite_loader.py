"""The infinite loader: pass after pass, closed and entered anywhere."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.data import Loader
from onion.data.infinite_loader import InfiniteLoader
from onion.data.interruptible_wait import Interrupted, InterruptibleWait
from onion.errors import DataError
from tests.data.computed import Anew, numbers_of
from tests.data.threads import prefetch_threads as threads


def endless(size=7, batch_size=3, **options):
    return Loader(list(range(size)), batch_size, **{"prefetch": 0, "collate": list, **options})


def take(feed, count):
    return [next(feed) for _ in range(count)]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_passes_follow_one_another_each_in_the_order_of_its_own(prefetch):
    shuffled = endless(shuffle=True, seed=4, prefetch=prefetch)
    expected = [batch for number in range(3) for batch in shuffled.batches(number)]
    feed = InfiniteLoader(shuffled)
    assert take(feed, 9) == expected
    assert expected[:3] != expected[3:6]
    assert (feed.pass_id, feed.batch, feed.given, feed.examples) == (2, 3, 9, 21)
    feed.close()


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(1, 4), st.lists(st.integers(0, 4), max_size=5), st.sampled_from([0, 2]))
def test_closing_anywhere_changes_nothing(size, batch_size, steps, prefetch):
    source = endless(size, batch_size, shuffle=True, prefetch=prefetch)
    uncut, feed = InfiniteLoader(source), InfiniteLoader(source)
    for count in steps:
        assert take(feed, count) == take(uncut, count)
        feed.close()
        assert feed.state_dict() == uncut.state_dict()
    uncut.close()
    assert threads() == []


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 12), st.booleans())
def test_another_feed_goes_on_at_the_place(size, batch_size, done, stream):
    source = Loader(lambda: range(size), batch_size, prefetch=0, collate=list) if stream else endless(size, batch_size)
    feed, other = InfiniteLoader(source), InfiniteLoader(source)
    take(feed, done)
    other.load_state_dict(feed.state_dict())
    assert take(other, 5) == take(feed, 5)
    assert other.state_dict() == feed.state_dict()


def test_two_feeds_of_one_loader_have_a_place_each():
    source = endless()
    one, other = InfiniteLoader(source), InfiniteLoader(source)
    assert take(one, 2) == [[0, 1, 2], [3, 4, 5]]
    assert other.place == "pass 0, batch 0 (both from 0)"
    assert take(other, 1) == [[0, 1, 2]]
    take(one, 3)
    assert one.place == "pass 1, batch 2 (both from 0)"


def test_loading_a_place_leaves_the_batches_under_way():
    feed = InfiniteLoader(endless(prefetch=2))
    take(feed, 2)
    feed.load_state_dict({"pass": 0, "batch": 0, "given": 0, "examples": 0})
    assert take(feed, 1) == [[0, 1, 2]]
    feed.close()


def test_a_source_without_a_batch_or_for_one_pass_is_an_error_and_not_an_end():
    with pytest.raises(DataError, match="returned no batch in pass 1"):
        next(InfiniteLoader(Loader(lambda: range(2), 3, drop_last=True, prefetch=0)))
    feed = InfiniteLoader(Loader(iter(range(3)), 3, prefetch=0, collate=list))
    assert next(feed) == [0, 1, 2]
    with pytest.raises(DataError, match="exhausted"):
        next(feed)


def test_a_feed_asks_a_source_for_each_of_its_own_passes():
    source = Anew([{"x": 0.0}] * 4)
    loader = Loader(source, tokens_per_batch=5, prefetch=0, collate=numbers_of)
    feed, other = InfiniteLoader(loader), InfiniteLoader(loader)
    drawn = take(feed, 5)
    take(other, 1)
    assert source.asked == [0, 1, 0]
    assert drawn == [*loader.batches(0), *loader.batches(1, 0)][:5]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_error_in_the_source_comes_at_its_place(prefetch):
    def source():
        yield from range(3)
        raise DataError("line 4 is broken")

    feed = InfiniteLoader(Loader(source, 3, prefetch=prefetch, collate=list))
    assert next(feed) == [0, 1, 2]
    with pytest.raises(DataError, match="line 4 is broken"):
        next(feed)
    feed.close()
    assert threads() == []


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_wait_that_is_ended_leaves_the_place(prefetch):
    feed, uncut = InfiniteLoader(endless(prefetch=prefetch)), InfiniteLoader(endless())
    assert take(feed, 2) == take(uncut, 2)
    feed.close()
    feed.wait = InterruptibleWait()
    feed.wait.may_end = True
    feed.wait.wake()
    with pytest.raises(Interrupted):
        next(feed)
    feed.close()
    assert feed.state_dict() == uncut.state_dict()
    feed.wait = InterruptibleWait()
    assert take(feed, 5) == take(uncut, 5)
    feed.close()
    assert threads() == []
