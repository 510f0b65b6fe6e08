"""Background: one piece of work at a time, whose errors are not lost."""

import threading

import pytest

from onion.checkpointing.background import Background


def test_the_loop_goes_on_while_the_work_is_under_way_and_wait_is_its_end():
    background, go, done = Background(), threading.Event(), []
    background.start(lambda: done.append(go.wait()))
    background.look()
    assert done == []
    go.set()
    background.wait()
    assert done == [True]


def test_the_next_piece_waits_for_the_one_before():
    background, order = Background(), []
    for number in range(20):
        background.start(lambda number=number: order.append(number))
    background.wait()
    assert order == list(range(20))


def fail():
    raise OSError("full")


def test_an_error_is_raised_where_the_end_is_asked_for_and_once():
    background = Background()
    background.start(fail)
    with pytest.raises(OSError, match="full"):
        background.wait()
    background.wait()
    background.look()


def test_an_error_keeps_the_next_piece_from_beginning():
    background, done = Background(), []
    background.start(fail)
    with pytest.raises(OSError, match="full"):
        background.start(lambda: done.append(1))
    background.wait()
    assert done == []


def test_look_raises_once_the_work_has_ended():
    background = Background()
    background.start(fail)
    background._thread.join()
    with pytest.raises(OSError, match="full"):
        background.look()


def test_with_nothing_to_do_there_is_nothing_to_wait_for():
    background = Background()
    background.wait()
    background.look()


def test_work_whose_wait_was_interrupted_goes_on_and_can_be_waited_for_again(monkeypatch):
    background, go, done = Background(), threading.Event(), []
    background.start(lambda: done.append(go.wait()))

    def interrupted(thread):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "join", interrupted)
        with pytest.raises(KeyboardInterrupt):
            background.wait()
    assert done == []
    go.set()
    background.wait()
    assert done == [True]


def test_work_whose_start_was_interrupted_is_not_waited_for(monkeypatch):
    background, done = Background(), []

    def interrupted(thread):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            background.start(lambda: done.append("first"))
    background.start(lambda: done.append("second"))
    background.wait()
    assert done == ["second"]
