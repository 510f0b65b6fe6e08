"""The loader: every example once, the same batches after resuming, no thread left over."""

import threading
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.data import Loader
from onion.data.cut import Cut
from onion.data.interruptible_wait import InterruptibleWait
from onion.errors import DataError
from tests.data.computed import Anew, Squares, numbers_of
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
        ({"tokens_per_batch": 0}, "tokens_per_batch must be an integer >= 1, got 0"),
        (
            {"batch_size": 2, "tokens_per_batch": 9},
            "batch_size= counts examples and tokens_per_batch= tokens: give one",
        ),
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
        (iter([1]), {"tokens_per_batch": 9, "lengths": [1]}, "lengths= needs a source with a length"),
        (iter([1]), {"tokens_per_batch": 9}, "tokens_per_batch= needs a source with a length"),
        (
            [1, 2],
            {"tokens_per_batch": 9},
            "tokens_per_batch= needs to know how many tokens each example has: pass lengths=",
        ),
        (
            [1, 2],
            {"tokens_per_batch": 9, "lengths": [1, 10]},
            r"example 1 \(from 0\) has a length of 10 tokens, more than",
        ),
        ([1, 2], {"tokens_per_batch": 9, "lengths": lambda one: 10}, r"example 0 \(from 0\) has a length of 10 tokens"),
        (Anew([1, 2]), {"lengths": len}, r"lengths= is a function, but the source has other examples in every pass"),
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


# -- batches by tokens -------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=80),
    shuffle=st.booleans(),
    weights=st.booleans(),
    prefetch=st.integers(0, 2),
    pass_id=st.integers(0, 5),
    start=st.integers(0, 90),
)
def test_batches_by_tokens_resume_in_mid_pass(lengths, shuffle, weights, prefetch, pass_id, start):
    more = {"weights": np.arange(len(lengths)) % 3 + 1} if weights else {}
    loader = Loader(
        range(len(lengths)), tokens_per_batch=20, lengths=lengths, shuffle=shuffle, prefetch=prefetch, **more
    )
    whole = lists(loader, pass_id)
    assert len(whole) == loader.batches_per_pass
    assert all(sum(lengths[number] for number in batch) <= 20 for batch in whole)
    assert weights or sorted(chain(*whole)) == list(range(len(lengths)))
    start = min(start, len(whole))
    assert lists(loader, pass_id, start) == whole[start:]
    with pytest.raises(DataError, match=rf"after batch {len(whole) + 1} of this pass: it has {len(whole)} batches"):
        loader.batches(pass_id, len(whole) + 1)


@pytest.mark.parametrize("lengths", [len, [3, 1, 3, 1], np.array([3, 1, 3, 1])], ids=["function", "list", "array"])
def test_a_batch_has_as_many_examples_as_fit(lengths):
    loader = Loader(["aaa", "b", "ccc", "d"], tokens_per_batch=4, lengths=lengths, prefetch=0)
    assert list(loader.batches(0)) == [["aaa"], ["ccc"], ["b", "d"]]
    assert Loader(["aaa"] * 3, tokens_per_batch=4, lengths=len, drop_last=True).batches_per_pass == 3


def test_lengths_may_be_those_of_the_source_and_mapped(tmp_path):
    class Mapped(Counting):
        lengths = np.memmap(tmp_path / "lengths", np.uint16, "w+", shape=10)

    Mapped.lengths[:] = 5
    assert Loader(Mapped(10), tokens_per_batch=10).batches_per_pass == 5
    assert Loader(Mapped(10), tokens_per_batch=10, lengths=[10] * 10).batches_per_pass == 10
    assert Loader(Mapped(10)).settings == Loader(range(10)).settings  # which do not look at them


def test_a_resumed_run_has_the_same_tokens_a_batch_and_lengths():
    told = [
        Loader(range(3), **{"tokens_per_batch": 9, "lengths": [1, 2, 3], "shuffle": True, **changed}).settings
        for changed in ({}, {"tokens_per_batch": 10}, {"lengths": [1, 2, 4]}, {"weights": [1, 1, 2]}, {"seed": 1})
    ]
    assert told[0] == Loader(range(3), tokens_per_batch=9, lengths=np.array([1, 2, 3]), shuffle=True).settings
    assert len({str(each) for each in told}) == len(told)


@pytest.mark.parametrize("number", [0, 2])
def test_pieces_of_batches_by_tokens(number):
    def loader(cut=None):
        made = Loader(Squares(), tokens_per_batch=12, lengths=[3] * 14, shuffle=True, num_workers=number)
        made.cut = cut
        return [*made.batches(1, 1)]

    shares = [loader(Cut(2, rank, 1)) for rank in (0, 1)]
    joined = [
        np.concatenate([piece.batch["x"] for pieces in each for piece in pieces.own if piece.weight]).tolist()
        for each in zip(*shares, strict=True)
    ]
    assert joined == [batch["x"].tolist() for batch in loader()]
    assert [pieces.crc32 for pieces in shares[0]] == [pieces.crc32 for pieces in shares[1]]


# -- other examples in every pass --------------------------------------------------------------------------------------

TEXTS = [{"x": np.float32(i)} for i in range(12)]


@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("size", [{"batch_size": 4}, {"tokens_per_batch": 20}], ids=["examples", "tokens"])
def test_each_pass_asks_for_its_examples_and_is_entered_anywhere(size, number):
    source = Anew(TEXTS)
    loader = Loader(source, **size, shuffle=True, num_workers=number, collate=numbers_of)
    first, second = list(loader.batches(0)), list(loader.batches(1))
    assert list(loader.batches(1, 2)) == second[2:]
    assert source.asked == [0, 1, 1]
    assert len(first) == len(second) == loader.batches_per_pass
    assert sum(map(sum, first)) != sum(map(sum, second))
    expected = [float(source.of_pass(1)[i]["x"]) for i in range(12)]
    assert sorted(chain(*second)) == sorted(expected)


def test_what_a_source_gives_for_a_pass_must_fit():
    source = Anew(TEXTS)
    loader = Loader(source, 4)
    source.of_pass = lambda pass_id: TEXTS[pass_id:]
    assert len(list(loader.batches(0))) == 3
    with pytest.raises(DataError, match="the data source has 11 examples now, but had 12 at first"):
        loader.batches(1)
    source.of_pass = lambda pass_id: iter(())
    with pytest.raises(DataError, match=r"Anew\.of_pass returned a tuple_iterator; it must return examples that have"):
        loader.batches(2)
