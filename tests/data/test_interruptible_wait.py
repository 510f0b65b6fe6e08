"""InterruptibleWait: it is ended while it is in progress, or before it begins; never afterwards."""

import threading

import pytest

from onion.data.interruptible_wait import Interrupted, InterruptibleWait


@pytest.fixture
def wait():
    wait = InterruptibleWait()
    wait.may_end = True
    return wait


def waited(wait, wakes=True):
    with wait:
        if wakes:
            wait.wake()
        return "not woken"


def test_a_wait_in_progress_is_ended_once(wait):
    with pytest.raises(Interrupted) as caught:
        waited(wait)
    assert caught.value.wait is wait
    wait.wake()  # the handler has left it


def test_a_wait_to_come_is_ended_before_it_begins(wait):
    wait.wake()
    with pytest.raises(Interrupted):
        waited(wait, wakes=False)
    wait.wake()  # the wait was over before it began


def test_afterwards_nothing_is_raised(wait):
    assert waited(wait, wakes=False) == "not woken"
    with pytest.raises(KeyError), wait:
        raise KeyError
    wait.wake()
    assert wait.asked


def test_what_may_not_be_ended_goes_on(wait):
    wait.may_end = False
    assert waited(wait) == "not woken"
    wait.may_end = True
    with pytest.raises(Interrupted):
        waited(wait, wakes=False)


def test_what_another_thread_waits_for_is_not_ended_in_the_main_one(wait):
    waits, woken, ended = threading.Event(), threading.Event(), []

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
