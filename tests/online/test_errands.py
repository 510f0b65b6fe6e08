"""Errands: work of other threads that a run does itself, and what becomes of it where there is no run."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from onion.online.errands import Errands
from tests.patience import PATIENCE


@pytest.fixture
def pool():
    with ThreadPoolExecutor(1) as made:
        yield made


def here():
    return threading.get_ident()


def left(errands, pool, work):
    """Have another thread leave work."""
    return pool.submit(errands.leave, work).result(PATIENCE)


def test_without_a_run_it_is_done_at_once(pool):
    errands = Errands()
    assert errands.is_still
    assert errands.do(here) == here()
    assert pool.submit(errands.do, here).result(PATIENCE) != here()


def test_a_run_does_it_in_its_own_thread_when_it_stands_still(pool):
    errands = Errands()
    with errands.taken_in():
        assert errands.is_still
        assert not pool.submit(lambda: errands.is_still).result(PATIENCE)
        first, second = left(errands, pool, here), left(errands, pool, lambda: 1 / 0)
        assert not first.done()
        errands.run()
        assert first.result(0) == here()
        with pytest.raises(ZeroDivisionError):
            second.result(0)
        assert errands.do(here) == here()


def test_who_waits_gets_what_came_of_it(pool):
    errands, asked = Errands(), threading.Event()
    leave = errands.leave

    def tell(work):
        future = leave(work)
        asked.set()
        return future

    errands.leave = tell
    with errands.taken_in():
        waiting = pool.submit(errands.do, here)
        assert asked.wait(PATIENCE)
        errands.run()
        assert waiting.result(PATIENCE) == here()


@pytest.mark.parametrize("how", ["over", "failed", "ended"])
def test_what_waits_at_the_end_of_a_run_is_done(pool, how):
    errands = Errands()
    futures = []

    def run():
        with errands.taken_in():
            futures.append(left(errands, pool, here))
            if how == "failed":
                raise KeyError
            if how == "ended":
                errands.end()
                assert futures[0].done()
                assert left(errands, pool, here) is None

    if how == "failed":
        with pytest.raises(KeyError):
            run()
    else:
        run()
    assert futures[0].result(0) == here()
    assert left(errands, pool, here) is None


def test_a_run_inside_leaves_the_outer_one_under_way(pool):
    errands = Errands()
    with errands.taken_in():
        with errands.taken_in():
            pass
        assert left(errands, pool, here) is not None


def test_who_asks_again_and_again_does_not_hold_the_run_up(pool):
    errands, done = Errands(), []

    def again():
        done.append(None)
        left(errands, pool, again)

    with errands.taken_in():
        left(errands, pool, again)
        errands.run()
        assert len(done) == 1


def test_ctrl_c_is_for_the_run(pool):
    def interrupted():
        raise KeyboardInterrupt

    errands = Errands()
    with errands.taken_in():
        future = left(errands, pool, interrupted)
        with pytest.raises(KeyboardInterrupt):
            errands.run()
        assert isinstance(future.exception(0), KeyboardInterrupt)
