"""Rows are answered each with its own answer, in batches of similar length; callers may go, the queue may be full."""

from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress

import pytest

from onion.serving.batcher import Batcher, ClosedError, QueueFullError
from tests.patience import PATIENCE
from tests.serving.fakes import Echo


@pytest.fixture
def make():
    made = []

    def make(**settings):
        made.append(Batcher(**{"tokens": 64, "room": 100, **settings}))
        return made[-1]

    yield make
    for batcher in made:
        assert batcher.close(PATIENCE)


def put(batcher, model, *texts):
    return batcher.put(model, [model.prepare(text) for text in texts])


def held(batcher, model):
    """Let the thread wait in a first batch, so that what is put next gathers."""
    first = put(batcher, model, "first")
    assert model.begun.acquire(timeout=PATIENCE)
    return first[0]


def test_every_row_has_its_own_answer(make):
    batcher, model = make(), Echo()
    texts = [f"text {'x' * (number % 17)} {number}" for number in range(90)]
    with ThreadPoolExecutor(8) as pool:
        futures = list(pool.map(lambda text: put(batcher, model, text)[0], texts))
    assert [future.result(PATIENCE) for future in futures] == [text.upper() for text in texts]


def test_rows_of_similar_length_are_computed_together(make):
    batcher, model = make(), Echo(is_open=False)
    held(batcher, model)
    futures = put(batcher, model, "aaaa", "b" * 40, "cccc", "dddd", "e" * 40)
    model.open.set()
    for future in futures:
        future.result(PATIENCE)
    assert model.batches == [["first"], ["aaaa", "cccc", "dddd"], ["b" * 40], ["e" * 40]]


def test_a_batch_has_its_most_tokens(make):
    batcher, model = make(tokens=12), Echo(is_open=False)
    held(batcher, model)
    futures = put(batcher, model, *["abcd"] * 5)
    model.open.set()
    assert [future.result(PATIENCE) for future in futures] == ["ABCD"] * 5
    assert list(map(len, model.batches)) == [1, 3, 2]


def test_a_row_larger_than_a_batch_is_computed(make):
    batcher, model = make(tokens=4), Echo()
    assert put(batcher, model, "longer than it")[0].result(PATIENCE) == "LONGER THAN IT"


def test_rows_are_computed_alone_where_the_model_asks_for_it(make):
    batcher, model = make(), Echo(alone=True, is_open=False)
    held(batcher, model)
    futures = put(batcher, model, "a", "b", "c")
    model.open.set()
    assert [future.result(PATIENCE) for future in futures] == ["A", "B", "C"]
    assert model.batches == [["first"], ["a"], ["b"], ["c"]]


def test_a_batch_has_rows_of_one_model(make):
    batcher, one, other = make(), Echo(is_open=False), Echo()
    held(batcher, one)
    futures = [put(batcher, model, text)[0] for model, text in ((one, "a"), (other, "b"), (one, "c"), (other, "d"))]
    one.open.set()
    assert [future.result(PATIENCE) for future in futures] == ["A", "B", "C", "D"]
    assert (one.batches, other.batches) == ([["first"], ["a", "c"]], [["b", "d"]])


def test_a_caller_that_goes_is_not_computed(make):
    batcher, model = make(), Echo(is_open=False)
    held(batcher, model)
    gone, kept = put(batcher, model, "gone", "kept")
    assert gone.cancel()
    model.open.set()
    assert kept.result(PATIENCE) == "KEPT"
    with pytest.raises(CancelledError):
        gone.result(PATIENCE)
    assert model.batches == [["first"], ["kept"]]


def test_all_callers_may_go(make):
    batcher, model = make(), Echo(is_open=False)
    held(batcher, model)
    assert all(future.cancel() for future in put(batcher, model, "a", "b"))
    model.open.set()
    assert put(batcher, model, "c")[0].result(PATIENCE) == "C"


def test_a_full_queue_takes_all_rows_of_a_call_or_none(make):
    batcher, model = make(room=3), Echo(is_open=False)
    held(batcher, model)
    futures = put(batcher, model, "a", "b")
    with pytest.raises(QueueFullError) as caught:
        put(batcher, model, "c", "d")
    assert caught.value.seconds > 0
    assert batcher.waiting() == 2
    futures += put(batcher, model, "e")
    model.open.set()
    assert [future.result(PATIENCE) for future in futures] == ["A", "B", "E"]


def test_an_error_is_the_answer_to_its_batch_alone(make):
    batcher, model = make(), Echo(alone=True)
    failing, fine = put(batcher, model, "fail", "fine")
    with pytest.raises(RuntimeError, match="this text fails"):
        failing.result(PATIENCE)
    assert fine.result(PATIENCE) == "FINE"


def test_closing_answers_what_waits_and_takes_no_more(make):
    batcher, model = make(), Echo(is_open=False)
    first = held(batcher, model)
    futures = put(batcher, model, "a", "b" * 30)
    with ThreadPoolExecutor(1) as pool:
        closing = pool.submit(batcher.close, PATIENCE)
        model.open.set()
        assert closing.result(PATIENCE)
    assert [first.result(0), *(future.result(0) for future in futures)] == ["FIRST", "A", "B" * 30]
    with pytest.raises(ClosedError):
        put(batcher, model, "late")


def test_what_was_computed_is_told(make):
    told = []
    batcher, model = make(told=lambda model, what: told.append((model, what.rows, what.tokens))), Echo(is_open=False)
    held(batcher, model)
    put(batcher, model, "ab", "cd")
    model.open.set()
    assert batcher.close(PATIENCE)
    assert told == [(model, 1, 5), (model, 2, 4)]


def test_batches_are_computed_side_by_side_and_rows_shared_out(make):
    batcher, model = make(workers=2), Echo(is_open=False)
    futures = put(batcher, model, *"abcd")
    for _ in range(2):  # both threads are within a batch
        assert model.begun.acquire(timeout=PATIENCE)
    model.open.set()
    assert [future.result(PATIENCE) for future in futures] == ["A", "B", "C", "D"]
    assert sorted(text for batch in model.batches for text in batch) == ["a", "b", "c", "d"]


def test_all_threads_end(make):
    batcher, model = make(workers=4), Echo()
    futures = put(batcher, model, *map(str, range(50)))
    assert batcher.close(PATIENCE)
    assert [future.result(0) for future in futures] == list(map(str, range(50)))


def test_rows_of_callers_who_have_gone_take_no_room(make):
    batcher, model = make(room=2), Echo(is_open=False)
    held(batcher, model)
    assert all(future.cancel() for future in put(batcher, model, "a", "b"))
    futures = put(batcher, model, "c", "d")
    assert batcher.waiting() == 2
    assert futures[0].cancel()
    assert batcher.waiting() == 1
    model.open.set()
    assert futures[1].result(PATIENCE) == "D"


def takes_more(batcher, model):
    """Whether rows are taken; if so, one was, and is cancelled."""
    with suppress(ClosedError):
        return put(batcher, model, "late")[0].cancel()


def test_whoever_waits_for_the_end_may_be_let_go(make):
    batcher, model = make(), Echo(is_open=False)
    first = held(batcher, model)
    try:
        with ThreadPoolExecutor(1) as pool:
            closing = pool.submit(batcher.close, PATIENCE)
            while takes_more(batcher, model):
                pass
            batcher.abandon()
            assert closing.result(PATIENCE) is False
    finally:
        model.open.set()
    assert first.result(PATIENCE) == "FIRST"
