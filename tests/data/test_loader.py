"""The loader: every example once, the same batches after resuming, no thread left over."""

import threading
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.data import Loader
from onion.data.infinite_loader import InfiniteLoader
from onion.data.interruptible_wait import Interrupted, InterruptibleWait
from onion.errors import DataError
from tests.data.threads import prefetch_threads as threads
from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    assert threads() == []


def lists(loader, pass_id=0, start=0):
    return [batch.tolist() if isinstance(batch, np.ndarray) else batch for batch in loader.batches(pass_id, start)]


class Counting:
    def __init__(self, n):
        self.n = n
        self.read = []

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        assert type(index) is int
        self.read.append(index)
        return index


prefetch = pytest.mark.parametrize("prefetch", [0, 2])


@prefetch
def test_batches_in_order(prefetch):
    loader = Loader(range(7), 3, prefetch=prefetch)
    assert lists(loader) == [[0, 1, 2], [3, 4, 5], [6]]
    assert lists(Loader(range(7), 3, drop_last=True, prefetch=prefetch)) == [[0, 1, 2], [3, 4, 5]]
    assert loader.batches_per_pass == 3
    assert Loader(range(7), 3, drop_last=True).batches_per_pass == 2


@pytest.mark.parametrize(
    ("source", "start", "patience", "ahead"),
    [
        (range(7), 0, None, True),
        (range(7), 2, None, False),  # one is left
        (range(7), 2, 60.0, True),  # the clock has to be watched
        (range(3), 0, None, False),
        (lambda: iter(range(3)), 0, None, True),  # their number is unknown
    ],
)
def test_a_lone_batch_needs_no_thread(source, start, patience, ahead):
    makers = []
    loader = Loader(source, 3, timeout=patience, collate=lambda some: makers.append(threading.current_thread()))
    assert list(loader.batches(0, start))
    assert all((maker is not threading.main_thread()) == ahead for maker in makers)


@prefetch
def test_shuffling_depends_on_seed_and_pass_only(prefetch):
    loader = Loader(range(20), 4, shuffle=True, seed=3, prefetch=prefetch)
    first, second = lists(loader, 0), lists(loader, 1)
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(20))
    assert first != second
    assert lists(Loader(range(20), 4, shuffle=True, seed=3), 1) == second
    assert lists(Loader(range(20), 4, shuffle=True, seed=4), 1) != second


@settings(max_examples=60)
@given(
    n=st.integers(1, 60),
    batch_size=st.integers(1, 20),
    shuffle=st.booleans(),
    buckets=st.booleans(),
    drop_last=st.booleans(),
    prefetch=st.integers(0, 2),
    pass_id=st.integers(0, 5),
    start=st.integers(0, 60),
)
def test_resuming_in_mid_pass_gives_the_rest(n, batch_size, shuffle, buckets, drop_last, prefetch, pass_id, start):
    batch_size = min(batch_size, n)
    length = (lambda i: i % 7) if buckets else None
    loader = Loader(range(n), batch_size, shuffle=shuffle, lengths=length, drop_last=drop_last, prefetch=prefetch)
    whole = lists(loader, pass_id)
    assert len(whole) == loader.batches_per_pass
    start = min(start, len(whole))
    assert lists(loader, pass_id, start) == whole[start:]


@prefetch
def test_skipped_examples_are_not_read(prefetch):
    data = Counting(10)
    assert lists(Loader(data, 3, prefetch=prefetch), start=2) == [[6, 7, 8], [9]]
    assert data.read == [6, 7, 8, 9]


@prefetch
@pytest.mark.parametrize("start", [0, 1, 3])
def test_a_stream_is_cut_and_skipped_too(prefetch, start):
    loader = Loader(lambda: iter(range(7)), 3, prefetch=prefetch)
    expected = [[0, 1, 2], [3, 4, 5], [6]]
    assert lists(loader, 0, start) == lists(loader, 1, start) == expected[start:]
    assert loader.batches_per_pass is None
    assert lists(Loader(lambda: iter(range(7)), 3, drop_last=True, prefetch=prefetch)) == expected[:2]


@settings(max_examples=60)
@given(
    n=st.integers(1, 60),
    batch_size=st.integers(1, 20),
    buffer=st.integers(1, 30),
    drop_last=st.booleans(),
    prefetch=st.integers(0, 2),
    pass_id=st.integers(0, 5),
    start=st.integers(0, 60),
)
def test_a_stream_out_of_a_buffer_resumes_in_mid_pass(n, batch_size, buffer, drop_last, prefetch, pass_id, start):
    def loader(source):
        options = {"seed": 3, "drop_last": drop_last, "prefetch": prefetch, "collate": list}
        return Loader(source, batch_size, shuffle_buffer=buffer, **options)

    whole = lists(loader(lambda: range(n)), pass_id)
    assert len({i for batch in whole for i in batch}) == (n - n % batch_size if drop_last else n)
    start = min(start, len(whole))
    assert lists(loader(lambda: range(n)), pass_id, start) == whole[start:]
    source = Skipping(n)
    assert lists(loader(source), pass_id, start) == whole[start:]
    assert set(source.skipped) == {i for batch in whole[:start] for i in batch}


class Skipping:
    """A stream that need not make what is skipped."""

    def __init__(self, n):
        self.n, self.skipped = n, []

    def __len__(self):
        return self.n

    def __iter__(self):
        return iter(range(self.n))

    def skipping(self, skipped):
        self.skipped = [place for place, skip in enumerate(skipped) if skip]
        return (None if skip else place for place, skip in enumerate(skipped))


def test_a_stream_that_can_skip_is_too_short_too():
    with pytest.raises(DataError, match="cannot continue after batch 3 of this pass: it has 2 batches"):
        list(Loader(Skipping(4), 2).batches(0, 3))


@prefetch
@pytest.mark.parametrize("buckets", [False, True])
def test_a_pass_draws_by_weight_and_resumes(prefetch, buckets):
    weights = [0.0] * 100 + [1.0] * 302
    more = {"shuffle": True, "lengths": range(402)} if buckets else {}
    loader = Loader(range(402), 4, weights=weights, seed=2, prefetch=prefetch, **more)
    whole = lists(loader, 1)
    seen = list(chain(*whole))
    assert (len(whole), len(seen)) == (101, 402)
    assert min(seen) >= 100
    assert len(set(seen)) < 302
    assert lists(loader, 1, 30) == whole[30:]
    assert lists(loader, 2) != whole
    assert (np.mean([max(batch) - min(batch) for batch in whole]) < 30) == buckets


def test_a_resumed_run_has_the_same_weights_and_buffer_and_any_number_of_workers():
    plain = Loader(range(4), 2, shuffle=True).settings
    assert plain == Loader(range(4), 2, shuffle=True, num_workers=2).settings
    one, other = (Loader(range(4), 2, shuffle=True, weights=w).settings for w in ([1, 2, 3, 4], [1, 2, 3, 5]))
    assert len({str(each) for each in (plain, one, other)}) == 3
    assert Loader(iter([1]), shuffle_buffer=5).settings["shuffle_buffer"] == 5


@pytest.mark.parametrize("length", [lambda text: len(text), [3, 1, 3, 1], np.array([3, 1, 3, 1])])
def test_buckets_bring_equal_lengths_together(length):
    loader = Loader(["aaa", "b", "ccc", "d"], 2, lengths=length)
    assert list(loader.batches(0)) == [["b", "d"], ["aaa", "ccc"]]


def test_a_length_function_reads_each_example_once_for_all_passes():
    data = Counting(6)
    loader = Loader(data, 2, lengths=lambda i: i, prefetch=0)
    assert data.read == []
    loader.batches(0)
    loader.batches(1)
    assert data.read == list(range(6))


@prefetch
def test_what_batches_tell_of_themselves(prefetch):
    batches = Loader(range(7), 3, prefetch=prefetch).batches(0, start=1)
    assert (len(batches), batches.examples) == (2, 0)
    next(batches)
    assert (len(batches), batches.examples) == (1, 3)
    assert [batch.tolist() for batch in batches] == [[6]]
    assert (len(batches), batches.examples) == (0, 4)
    assert bool(batches)
    assert next(batches, None) is None
    with pytest.raises(TypeError, match="a stream does not know"):
        len(Loader(lambda: [1, 2], 1, prefetch=0).batches(0))


@prefetch
def test_close_is_idempotent_and_ends_the_pass(prefetch):
    batches = Loader(range(100), 2, prefetch=prefetch).batches(0)
    next(batches)
    batches.close()
    batches.close()
    assert threads() == []
    assert next(batches, None) is None
    assert len(batches) == 49


NO_TIME = "timeout must be a number of seconds > 0, got "


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size must be an integer >= 1, got 0"),
        ({"batch_size": 2.0}, "batch_size must be an integer >= 1, got 2.0"),
        ({"batch_size": True}, "batch_size must be an integer >= 1, got True"),
        ({"prefetch": -1}, "prefetch must be an integer >= 0, got -1"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        *(({"timeout": wrong}, NO_TIME + repr(wrong)) for wrong in (0, -1.0, float("nan"), float("inf"), True, "1")),
        ({"shuffle_buffer": 0}, "shuffle_buffer must be an integer >= 1, got 0"),
        ({"num_workers": -1}, "num_workers must be an integer >= 0, got -1"),
        ({"timeout": 1.0, "prefetch": 0}, "timeout= needs the background thread, prefetch >= 1: without it"),
    ],
)
def test_arguments_out_of_range(settings, message):
    with pytest.raises(ValueError, match=message):
        Loader([1], **settings)


@pytest.mark.parametrize(
    ("source", "settings", "message"),
    [
        ([], {}, "the data source .list. is empty"),
        (iter([1]), {"shuffle": True}, "shuffle= needs a source with a length"),
        (iter([1]), {"lengths": len}, "lengths= needs a source with a length"),
        (iter([1]), {"weights": [1]}, "weights= needs a source with a length"),
        ([1, 2], {"shuffle_buffer": 8}, "shuffle_buffer= is for a stream; this source has a length, so shuffle=True"),
        ([1, 2], {"weights": [1]}, r"one number for each of the 2 examples, got int64 \[1\]"),
        ([1, 2], {"weights": ["1", "2"]}, r"one number for each of the 2 examples, got <U1 \[2\]"),
        *(
            ([1, 2], {"weights": wrong}, "weights= must be finite numbers >= 0, one of them above 0")
            for wrong in ([0, 0], [-1, 2], [float("nan"), 1], [float("inf"), 1])
        ),
        ([1, 2], {"drop_last": True}, "2 examples do not fill one batch of 32"),
        ([1, 2], {"lengths": [1]}, r"one integer for each of the 2 examples, got int64 \[1\]"),
        ([1, 2], {"lengths": [1.5, 2.5]}, r"got float64 \[2\]"),
    ],
)
def test_data_that_does_not_fit(source, settings, message):
    with pytest.raises(DataError, match=message):
        Loader(source, **settings)


@pytest.mark.parametrize(("pass_id", "start"), [(-1, 0), (0, -1)])
def test_places_out_of_range(pass_id, start):
    with pytest.raises(ValueError, match="must be an integer >= 0, got -1"):
        Loader([1]).batches(pass_id, start)


@pytest.mark.parametrize("source", [range(4), lambda: range(4)])
def test_a_place_behind_the_end_is_not_the_same_data(source):
    loader = Loader(source, 2)
    assert list(loader.batches(0, 2)) == []
    with pytest.raises(DataError, match="cannot continue after batch 3 of this pass: it has 2 batches"):
        list(loader.batches(0, 3))


# -- sources that fail -------------------------------------------------------------------------------------------------


class Failing(Counting):
    def __init__(self, n, error):
        super().__init__(n)
        self.error = error

    def __getitem__(self, index):
        if index == 4:
            raise self.error
        return super().__getitem__(index)


@prefetch
@pytest.mark.parametrize("error", [OSError("no disk"), ValueError("no number"), KeyError("label"), KeyError(3)])
def test_an_error_keeps_its_type_and_says_which_example(prefetch, error):
    batches = Loader(Failing(6, error), 2, prefetch=prefetch).batches(0)
    assert [next(batches).tolist(), next(batches).tolist()] == [[0, 1], [2, 3]]
    with pytest.raises(type(error)) as caught:
        next(batches)
    assert threads() == []
    assert caught.value is error
    assert error.__notes__ == ["example 4 (from 0)"]
    error.__notes__.clear()


@prefetch
def test_a_shuffled_example_is_told_by_its_number_in_the_source(prefetch):
    loader = Loader(Failing(6, error := OSError("no disk")), 3, shuffle=True, seed=2, prefetch=prefetch)
    with pytest.raises(OSError, match="no disk"):
        list(loader.batches(0))
    assert error.__notes__ == ["example 4 (from 0)"]


def test_the_length_of_an_example_that_cannot_be_read_says_so_too():
    loader = Loader(Failing(6, DataError("line 5 is broken")), 3, lengths=lambda example: 1)
    with pytest.raises(DataError, match=r"^example 4 \(from 0\): line 5 is broken$"):
        loader.batches(0)


@prefetch
def test_an_error_in_collate_says_which_examples(prefetch):
    def refuse(examples):
        raise ValueError("ragged")

    with pytest.raises(ValueError, match="ragged") as caught:
        next(Loader(range(6), 3, collate=refuse, prefetch=prefetch).batches(0, 1))
    assert caught.value.__notes__ == ["the batch of the examples 3, 4, 5 (from 0)"]
    with pytest.raises(ValueError, match="ragged") as caught:
        next(Loader(range(9), 9, collate=refuse, prefetch=prefetch).batches(0))
    assert caught.value.__notes__ == ["the batch of the examples 0, 1, 2, 3, 4, 5, 6, 7, ... (from 0)"]


@prefetch
@pytest.mark.parametrize("error", [IndexError("list index out of range"), KeyError(4)])
def test_a_length_that_promises_too_much(prefetch, error):
    batches = Loader(Failing(6, error), 3, prefetch=prefetch).batches(0)
    next(batches)
    told = r"has a length of 6 examples, but example 4 \(from 0\) is missing: (IndexError|KeyError): "
    with pytest.raises(DataError, match=told) as caught:
        next(batches)
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("change", [list.pop, lambda data: data.append(1)])
def test_a_length_that_changes_between_passes(change):
    data = [1, 2, 3, 4]
    loader = Loader(data, 2)
    lists(loader, 0)
    change(data)
    with pytest.raises(DataError, match=rf"the data source has {len(data)} examples now, but had 4 at first"):
        loader.batches(1)


def test_a_batch_that_does_not_come_in_time_is_an_error(silent):
    batches = Loader(silent, 1, timeout=0.01).batches(0)
    assert silent.waits.wait(PATIENCE)
    assert next(batches).tolist() == [1]
    with pytest.raises(DataError, match=r"returned nothing for 0.01 s"):
        next(batches)
    assert (batches.given, batches.examples) == (1, 1)
    batches.close()


@pytest.mark.parametrize("asked", [True, False])
def test_a_thread_that_hangs_is_abandoned_soon_after_wake(asked, silent, caplog, monkeypatch):
    monkeypatch.setattr("onion.data.prefetch.ABANDON_TIMEOUT", 0.01)
    wait = InterruptibleWait()
    batches = Loader(silent, 1).batches(0, wait=wait)
    next(batches)
    assert silent.waits.wait(PATIENCE)
    if asked:
        wait.wake()
    else:
        silent.release.set()
    batches.close()
    assert ("busy with one item for 0.01 s" in caplog.text) == asked


# -- pass after pass ---------------------------------------------------------------------------------------------------


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
