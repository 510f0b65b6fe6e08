"""Wait: it is ended while it is under way, or before; never after."""

import threading

import pytest

from onion.data.interruptible_wait import Interrupted, InterruptibleWait


def waited(wait, wakes=True):
    with wait:
        if wakes:
            wait.wake()
        return "not woken"


def test_a_wait_under_way_is_ended_where_it_is():
    wait = InterruptibleWait()
    wait.may_end = True
    with pytest.raises(Interrupted) as caught:
        waited(wait)
    assert caught.value.wait is wait


def test_a_wait_to_come_is_ended_before_it_begins():
    wait = InterruptibleWait()
    wait.may_end = True
    wait.wake()
    with pytest.raises(Interrupted):
        waited(wait, wakes=False)
    wait.wake()  # the wait was over before it began


def test_afterwards_nothing_is_raised():
    wait = InterruptibleWait()
    wait.may_end = True
    assert waited(wait, wakes=False) == "not woken"
    wait.wake()
    with pytest.raises(KeyError), InterruptibleWait():
        raise KeyError
    assert wait.asked


def test_a_wait_that_is_left_by_an_error_is_over():
    wait = InterruptibleWait()
    wait.may_end = True
    with pytest.raises(KeyError), wait:
        raise KeyError
    wait.wake()


def test_it_is_ended_once():
    wait = InterruptibleWait()
    wait.may_end = True
    with pytest.raises(Interrupted):
        waited(wait)
    wait.wake()  # the handler has left it


def test_what_may_not_be_ended_goes_on():
    wait = InterruptibleWait()
    assert waited(wait) == "not woken"
    wait.may_end = True
    with pytest.raises(Interrupted):
        waited(wait, wakes=False)


def test_what_another_thread_waits_for_is_not_ended_in_the_main_one():
    wait, waits, woken, ended = InterruptibleWait(), threading.Event(), threading.Event(), []
    wait.may_end = True

    def work():
        with wait:
            waits.set()
            woken.wait()
        with wait:
            ended.append("the wait to come")

    thread = threading.Thread(target=work)
    thread.start()
    waits.wait()
    try:
        wait.wake()
    finally:
        woken.set()
        thread.join()
    assert ended == ["the wait to come"]
    assert wait.asked
    with pytest.raises(Interrupted):
        waited(wait, wakes=False)
