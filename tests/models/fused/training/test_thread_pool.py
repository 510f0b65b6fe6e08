"""Functions on several threads at once."""

import os
import signal
import threading

import pytest

from onion import device
from onion.models.fused.training.thread_pool import at_once
from tests.patience import PATIENCE

# isort: split
import paddle


@pytest.fixture(autouse=True)
def two_threads():
    before = device.threads()
    device.use_threads(2)
    yield
    device.use_threads(before)


def test_results_come_in_the_order_of_arguments():
    assert at_once(lambda number: number * number, [3, 1, 2]) == [9, 1, 4]


def test_all_arguments_are_worked_on_at_once_the_first_by_this_thread():
    together = threading.Barrier(3, timeout=PATIENCE)

    def meet(_):
        together.wait()
        return threading.get_ident()

    threads = at_once(meet, range(3))
    assert threads[0] == threading.get_ident()
    assert len(set(threads)) == 3


@pytest.mark.parametrize("count", [1, 3])
def test_nothing_is_recorded_for_autograd(count):
    assert at_once(lambda _: paddle.is_grad_enabled(), range(count)) == [False] * count
    assert paddle.is_grad_enabled()


@pytest.mark.parametrize(("threads", "share"), [(2, 1), (3, 1), (4, 2), (9, 4)])
def test_products_share_the_threads_meanwhile_and_have_as_many_as_before_afterwards(threads, share):
    device.use_threads(threads)
    assert at_once(lambda _: device.threads(), range(2)) == [share, share]
    assert device.threads() == threads


def test_where_there_is_one_thread_it_takes_one_after_the_other():
    device.use_threads(1)
    assert at_once(lambda _: threading.get_ident(), range(3)) == [threading.get_ident()] * 3
    assert device.threads() == 1


def test_signals_are_left_to_the_main_thread():
    def blocked(_):
        return signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, [])

    assert at_once(blocked, range(2)) == [False, True]


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_an_error_is_raised_once_all_have_ended(wrong):
    ended = []

    def work(number):
        if number == wrong:
            raise ValueError(number)
        ended.append(number)

    with pytest.raises(ValueError, match=str(wrong)):
        at_once(work, range(3))
    assert sorted(ended) == sorted({0, 1, 2} - {wrong})
    assert device.threads() == 2


def test_a_forked_process_has_threads_of_its_own():
    at_once(str, range(2))
    child = os.fork()
    if child == 0:
        os._exit(at_once(lambda number: number + 1, range(2)) != [1, 2])
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
