"""Workers: results in the order of the items, errors in their turn, and no process that is left."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import pytest

from onion import DataProvider, Observer, Runner, Signals
from onion.data import Loader
from onion.data import prefetch as prefetching
from onion.data.workers import Workers
from onion.errors import DataError
from tests.data.computed import (
    Broken,
    Hanging,
    Squares,
    die_of_five,
    hang,
    leave_at_five,
    refuse_five,
    refuse_with_its_own,
    square,
    stream,
    summed,
    unsendable,
    wait_for_the_next,
)
from tests.data.threads import prefetch_threads
from tests.paths import ROOT
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _nothing_is_left():
    yield
    assert multiprocessing.active_children() == []
    assert prefetch_threads() == []


def items_that_break():
    yield from range(5)
    raise OSError("no disk")


def drawn(function, items, number=2):
    """The results, and the error after them."""
    results = []
    try:
        for result in Workers(function, number).map(items):
            results.append(result)
    except Exception as error:
        return results, error
    return results, None


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("size", [0, 1, 20])
def test_results_come_in_the_order_of_the_items(number, size):
    assert drawn(square, range(size), number) == ([i**2 for i in range(size)], None)


def test_a_slow_item_holds_up_the_results_and_not_the_other_workers(tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    assert drawn(wait_for_the_next, [(pipe, 0), (pipe, 1)]) == (["written by the second", "second"], None)


def test_no_more_items_are_begun_than_workers_need():
    begun = []
    results = Workers(square, 2).map(begun.append(i) or i for i in range(100))
    assert next(results) == 0
    assert len(begun) <= 5
    results.close()


@pytest.mark.parametrize(
    ("function", "items", "kind", "said"),
    [
        (refuse_five, range(9), ValueError, "^five"),
        (refuse_with_its_own, range(9), RuntimeError, "UnsendableError: gone"),
        (die_of_five, range(9), DataError, r"a worker process \(\d+\) died, killed by SIGKILL; lack of memory is the"),
        (leave_at_five, range(9), DataError, r"a worker process \(\d+\) died, with exit code 3; lack of memory"),
        (square, items_that_break(), OSError, "no disk"),
        (square, [0, lambda: 1], DataError, "an item for a worker cannot be sent between processes"),
        (unsendable, range(9), DataError, "the result of a worker cannot be sent between processes"),
    ],
)
def test_an_error_comes_in_its_turn(function, items, kind, said):
    results, error = drawn(function, items)
    before = {refuse_with_its_own: 0, unsendable: 0}.get(function, 1 if isinstance(items, list) else 5)
    assert len(results) == before
    assert type(error) is kind
    with pytest.raises(kind, match=said):
        raise error


def test_an_error_has_the_traceback_of_its_worker():
    _, error = drawn(refuse_five, range(9))
    (note,) = error.__notes__
    assert note.startswith("in a worker process:\nTraceback")
    assert "in refuse_five" in note


def test_what_cannot_be_sent_is_refused_before_a_process_starts():
    with pytest.raises(
        DataError, match=r"what a worker computes cannot be sent .*; use functions and classes of a mod"
    ):
        Workers(lambda number: number, 2)


def test_closing_ends_a_worker_in_the_middle_of_an_item(tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    workers, results = Workers(hang, 2), []
    thread = threading.Thread(target=lambda: results.extend(workers.map([pipe])))
    thread.start()
    assert pipe.read_text() == "at work"
    workers.close()
    thread.join(PATIENCE)
    assert results == []


# -- a loader with workers ---------------------------------------------------------------------------------------------


def batches(loader, pass_id=0, start=0):
    there = loader.batches(pass_id, start)
    found = [batch["x"].tobytes() for batch in there]
    there.close()
    return found


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize(
    "settings", [{}, {"shuffle": True, "lengths": [i % 5 for i in range(14)]}, {"drop_last": True}]
)
def test_the_batches_are_those_without_workers(settings, prefetch):
    plain, apart = (Loader(Squares(), 4, prefetch=prefetch, num_workers=n, **settings) for n in (0, 2))
    for pass_id, start in ((0, 0), (1, 2)):
        assert batches(apart, pass_id, start) == batches(plain, pass_id, start)


@pytest.mark.parametrize(
    ("source", "settings"),
    [(Squares(random=True), {"shuffle": True}), (stream, {"collate": summed})],
    ids=["numbers", "stream"],
)
def test_what_is_drawn_in_workers_depends_on_seed_pass_and_batch_only(source, settings):
    one, three = (Loader(source, 4, seed=3, num_workers=n, **settings) for n in (1, 3))
    whole = batches(one, 1)
    assert batches(three, 1) == whole
    assert batches(three, 1, start=2) == whole[2:]
    assert batches(three, 2) != whole
    assert len(set(whole)) == 4


def test_an_error_names_item_batch_and_example():
    provider = DataProvider(Broken(), 2, num_workers=2)
    with pytest.raises(ValueError, match="a broken picture") as caught:
        Runner(provider).run(passes=1)
    example, trace, place = caught.value.__notes__
    assert (example, place) == ("example 5 (from 0)", "data_provider, pass 0, batch 2 (both from 0)")
    assert "in __getitem__" in trace
    assert provider.state_dict() == {"batch": 2, "examples": 4}


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_signal_ends_the_wait_for_a_worker_that_hangs(prefetch, monkeypatch):
    """Its third batch is done; it is between two batches that the run waits."""
    monkeypatch.setattr(prefetching, "ABANDON_TIMEOUT", PATIENCE)  # the thread ends, however busy the machine is
    provider = DataProvider(Hanging(), 2, prefetch=prefetch, num_workers=1)
    pid = os.getpid()

    def tell(state):
        if state.step == 3:
            threading.Timer(0, os.kill, (pid, signal.SIGTERM)).start()

    state = Runner(Signals(leave=False), Observer(on_batch_end=tell), provider).run(passes=1)
    assert (state.step, state.stopped) == (3, "received SIGTERM")
    assert provider.state_dict() == {"batch": 3, "examples": 6}


# -- whole processes ---------------------------------------------------------------------------------------------------

RUN = """
import multiprocessing, os, signal, sys
from multiprocessing import forkserver
from pathlib import Path
from onion import Accumulate, DataProvider, Observer, Runner, Signals
from tests.data.computed import Squares

def tell(state):
    if state.step == 3:
        workers = [worker.pid for worker in multiprocessing.active_children()]
        print(len(workers), blocked_in_the_fork_server(), flush=True)
        sys.stdin.readline()

def blocked_in_the_fork_server():
    status = Path(f"/proc/{forkserver._forkserver._forkserver_pid}/status")
    if not status.exists():
        return 3
    (mask,) = (int(line.split()[1], 16) for line in status.read_text().splitlines() if line.startswith("SigBlk"))
    return sum(mask >> number - 1 & 1 for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM))

signal.signal(signal.SIGINT, signal.default_int_handler)
Runner(Signals(), Observer(on_batch_end=tell), DataProvider(Squares(10_000), 2, num_workers=2)).run(passes=1)
"""


def process(*words, **options):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, *words], text=True, cwd=ROOT, **pipes, **options)


def test_workers_end_with_a_run_that_is_killed():
    with process("-c", RUN) as run:
        assert run.stdout.readline() == "2 3\n"
        run.kill()
        assert (run.stdout.read(), run.stderr.read()) == ("", "")  # not before all who could write are gone


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_whole_group_is_left_to_the_run(number):
    """As a terminal sends Ctrl-C, and systemd SIGTERM."""
    with process("-c", RUN, start_new_session=True) as run:
        assert run.stdout.readline() == "2 3\n"  # also while the fork server imports: all three are blocked there
        os.killpg(run.pid, number)
        told, errors = run.communicate("go on\n")
    assert (told, errors, run.returncode) == ("", "", 128 + number)


UNGUARDED = """
from onion import DataProvider, Runner

class Own:
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return float(index)

{0}Runner(DataProvider(Own(), 2, num_workers=1)).run(passes=1)
"""


@pytest.mark.parametrize("guarded", [True, False])
def test_a_script_needs_a_guard_and_is_told_so(guarded, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED.format("if __name__ == '__main__':\n    " * guarded))
    with process(str(script), env={**os.environ, "PYTHONPATH": str(ROOT)}) as run:
        _, errors = run.communicate()
    assert (run.returncode == 0) == guarded, errors
    assert ("A script that starts workers needs if __name__ == '__main__':" in errors) == (not guarded)
