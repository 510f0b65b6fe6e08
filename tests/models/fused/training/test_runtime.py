"""The parts of a batch, and functions on several threads at once."""

import os
import signal
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onion import device
from onion.models.fused.training.runtime import FEWEST, at_once, split
from onion.models.packing import Packing
from tests.patience import PATIENCE

# isort: split
import paddle


def packing_of(lengths, width=None):
    lengths = np.asarray(lengths)
    return Packing.of(np.arange(width or lengths.max()) < lengths[:, None], 2)


@given(st.lists(st.integers(1, 90), min_size=1, max_size=20), st.integers(1, 5))
def test_parts_hold_every_row_once_and_in_order(lengths, count):
    parts = split(packing_of(lengths, 100), count, None)
    assert 1 <= len(parts) <= count
    assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
    assert parts[-1].stop == sum(lengths)
    assert [length for part in parts for length in part.packing.mask.sum(axis=1)] == lengths


def test_halves_have_about_as_many_tokens():
    first, second = split(packing_of([90, 15, 15, 15, 15, 15, 15]), 2, None)
    assert (first.stop, second.stop) == (90, 180)


def test_a_part_is_as_wide_as_its_longest_row():
    assert [part.packing.length for part in split(packing_of([90, 30, 30, 30]), 2, None)] == [90, 30]


@pytest.mark.parametrize(("lengths", "parts"), [([FEWEST], 1), ([FEWEST, FEWEST], 2), ([FEWEST, FEWEST - 1], 1)])
def test_small_batches_are_not_parted(lengths, parts):
    assert len(split(packing_of(lengths), 2, None)) == parts


def test_masks_belong_to_seed_and_part():
    def masks(seed):
        return [part.mask([4, 5], 0.5).numpy().tobytes() for part in split(packing_of([90, 90]), 2, seed)]

    assert masks(1) == masks(1)
    assert len({*masks(1), *masks(2)}) == 4


def test_without_a_seed_or_probability_there_is_no_mask():
    assert split(packing_of([5]), 1, None)[0].mask([2], 0.5) is None
    assert split(packing_of([5]), 1, 3)[0].mask([2], 0) is None


# -- threads -----------------------------------------------------------------------------------------------------------


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
