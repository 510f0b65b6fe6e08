"""The background thread: same items, same order, same errors, and never a thread left over."""

import gc
import itertools
import signal
import sys
import threading
import traceback
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onion.data import Prefetcher
from onion.data.prefetch import ABANDON_TIMEOUT
from onion.errors import DataError
from tests.data.threads import prefetch_threads as threads
from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    assert threads() == []
    yield
    assert threads() == []


@pytest.mark.parametrize("kind", [list, iter, lambda items: lambda: items, lambda items: lambda: iter(items)])
@pytest.mark.parametrize("depth", [1, 2, 10])
def test_the_same_items_in_the_same_order(kind, depth):
    ahead = Prefetcher(kind([1, 2, 3]), depth)
    assert list(ahead) == [1, 2, 3]
    assert threads() == []
    assert next(ahead, "end") == "end"
    ahead.close()


@settings(max_examples=50)
@given(n=st.integers(0, 30), depth=st.integers(1, 5), taken=st.integers(0, 40))
def test_any_number_taken_before_closing(n, depth, taken):
    with Prefetcher(range(n), depth) as ahead:
        assert list(itertools.islice(ahead, taken)) == list(range(min(n, taken)))
    ahead.close()
    assert threads() == []
    assert list(ahead) == []


def test_items_may_be_none_or_errors():
    items = [None, ValueError("an item, not raised"), StopIteration()]
    assert list(Prefetcher(items, 2)) == items


def test_it_is_ahead_by_depth_and_no_more():
    made, reached = [], threading.Event()

    def source():
        for i in range(100):
            made.append(i)
            if len(made) == 3:
                reached.set()
            yield i

    with Prefetcher(source, depth=3) as ahead:
        assert reached.wait(PATIENCE)
        assert [next(ahead), next(ahead)] == [0, 1]
    assert len(made) <= 3 + 2


def broken():
    yield 1
    yield 2
    raise KeyError("in the source")


def test_an_error_comes_where_its_item_would_have_with_its_traceback():
    ahead = Prefetcher(broken, depth=5)
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(KeyError, match="in the source") as caught:
        next(ahead)
    assert "broken" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert threads() == []
    assert list(ahead) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_no_error_is_swallowed_by_the_thread(error):
    def source():
        yield 1
        raise error

    ahead = Prefetcher(source)
    assert next(ahead) == 1
    with pytest.raises(error):
        next(ahead)


def test_an_error_in_the_function_that_makes_the_source():
    with pytest.raises(ZeroDivisionError):
        next(Prefetcher(lambda: 1 / 0))


def test_an_error_of_an_item_that_is_not_drawn_is_not_raised_by_close():
    ahead = Prefetcher(broken, depth=5)
    assert next(ahead) == 1
    ahead.close()


def test_closing_early_closes_a_generator_in_its_own_thread():
    closed = []

    def source():
        try:
            yield from itertools.count()
        finally:
            closed.append(threading.current_thread().name)

    with Prefetcher(source) as ahead:
        next(ahead)
    assert closed == ["onion-prefetch"]


def test_an_iterator_that_nobody_closed_leaves_no_thread():
    ahead = Prefetcher(itertools.count())
    assert next(ahead) == 0
    (thread,) = threads()
    del ahead
    gc.collect()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_an_error_does_not_keep_the_iterator_alive():
    ahead = Prefetcher(broken)
    with pytest.raises(KeyError):
        list(ahead)
    gc.collect()
    gc.disable()
    try:
        watched = Prefetcher(broken)
        alive = weakref.ref(watched)
        with pytest.raises(KeyError) as caught:
            list(watched)
        del caught, watched
        assert alive() is None
    finally:
        gc.enable()


def abandoned(silent, **options):
    """A Prefetcher whose source yields no second item."""
    ahead = Prefetcher(silent, **options)
    assert silent.waits.wait(PATIENCE)
    assert next(ahead) == 1
    return ahead


@pytest.mark.parametrize("hurry", [False, True])
def test_a_source_that_does_not_return_is_abandoned_with_a_warning(hurry, silent, caplog):
    """To hurry is not to wait longer."""
    ahead = abandoned(silent, close_timeout=0.01)
    (thread,) = threads()
    if hurry:
        ahead.hurry()
    ahead.close()
    assert "busy with one item for 0.01 s" in caplog.text
    assert thread.daemon


@pytest.mark.parametrize("timeout", [0.01, 0.6])
def test_a_source_that_gives_nothing_in_time_is_an_error_and_left_behind(timeout, silent, caplog):
    ahead = abandoned(silent, timeout=timeout)
    with pytest.raises(DataError, match=f"the data source has returned nothing for {timeout} s"):
        next(ahead)
    ahead.close()
    assert f"busy with one item for {ABANDON_TIMEOUT} s" in caplog.text


def test_a_source_in_time_is_none():
    with Prefetcher(range(3), timeout=PATIENCE) as ahead:
        assert list(ahead) == [0, 1, 2]


def test_what_is_there_is_given_however_late_one_looks(silent, monkeypatch):
    """As where a busy machine has kept the thread that looks from its processor."""
    later = itertools.count(step=100)
    monkeypatch.setattr("onion.data.prefetch.monotonic", lambda: next(later))
    ahead = abandoned(silent, timeout=0.01)
    ahead.hurry()
    ahead.close()


def test_who_gives_up_waiting_does_not_wait_again_to_close(silent, caplog):
    def interrupt():
        main = threading.main_thread().ident
        while sys._current_frames()[main].f_code.co_name != "_awaited":
            pass
        signal.pthread_kill(main, signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        ahead = abandoned(silent, timeout=PATIENCE)
        sender = threading.Thread(target=interrupt)
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            next(ahead)
        sender.join(PATIENCE)
    finally:
        signal.signal(signal.SIGTERM, before)
    ahead.close()
    assert "its thread was abandoned" in caplog.text


@pytest.mark.parametrize("depth", [0, -1])
def test_depth_has_to_be_positive(depth):
    with pytest.raises(ValueError, match="must be >= 1, got"):
        Prefetcher([], depth)
