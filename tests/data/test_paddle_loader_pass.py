"""RunningLoader: the errors of a DataLoader come at their batch, and its workers end, with real ones."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from onion import DataError, DataProvider, Observer, Runner
from onion.data.paddle_loader import PaddleBatches
from onion.data.paddle_loader_pass import RunningLoader
from tests.data.loaders import FORKS, WORKERS, Numbers, batches, numbers, shared_memory_of
from tests.paths import ROOT
from tests.patience import PATIENCE

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
from paddle.io import DataLoader, IterableDataset

pytestmark = FORKS


def fail_at_5(index):
    if index == 5:
        raise ValueError("a broken picture")
    return np.float32(index)


@WORKERS
def test_an_error_in_a_dataset_comes_at_its_batch_and_says_where(workers):
    there = PaddleBatches(DataLoader(Numbers(8, fail_at_5), batch_size=2, num_workers=workers)).batches(0)
    assert [next(there).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="a broken picture") as raised:
        next(there)
    there.close()
    assert multiprocessing.active_children() == []
    (note,) = raised.value.__notes__
    assert note.startswith("example 5 (from 0), read by the DataLoader:\nTraceback")
    assert "in fail_at_5" in note


def test_an_error_that_ends_an_iteration_does_not_end_the_pass():
    def ended(index):
        raise StopIteration

    with pytest.raises(RuntimeError):
        batches(DataLoader(Numbers(2, ended)))


@pytest.mark.parametrize("of", ["stream", "collate", "unsendable"])
def test_other_errors_come_out_too(of):
    class UnsendableError(Exception):
        pass

    class Broken(IterableDataset):
        def __iter__(self):
            yield np.float32(0)
            raise LookupError("gone")

    def refuse(examples):
        raise LookupError("gone") if of == "collate" else UnsendableError("gone")

    loader = DataLoader(Broken() if of == "stream" else Numbers(), collate_fn=None if of == "stream" else refuse)
    with pytest.raises(RuntimeError if of == "unsendable" else LookupError, match="gone"):
        batches(loader)


def test_a_worker_that_dies_is_told_of():
    def die(index):
        if index == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return np.float32(index)

    seen = []
    provider = DataProvider(DataLoader(Numbers(12, die), batch_size=2, num_workers=2, timeout=1))
    runner = Runner(Observer(on_batch_end=lambda state: seen.append(state.step)), provider)
    died = r"^data_provider, pass 0, batch \d .*: a worker of the DataLoader \(process \d+\) died, killed by SIGKILL"
    with pytest.raises(DataError, match=died):
        runner.run(passes=1)
    assert len(seen) <= 2
    assert multiprocessing.active_children() == []


@WORKERS
@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_pass_that_is_left_early_leaves_no_worker_and_no_shared_memory(workers, prefetch):
    pids = []
    form = lambda index: np.full([64, 64], index, np.float32)  # noqa: E731
    loader = DataLoader(Numbers(64, form), batch_size=4, num_workers=workers)

    def stop(state):
        if state.step == 3:
            pids.extend(worker.pid for worker in multiprocessing.active_children())
            state.stop("enough")

    provider = DataProvider(loader, prefetch=prefetch)
    assert Runner(Observer(on_batch_end=stop), provider).run(passes=1).step == 3
    assert provider.state_dict() == {"batch": 3, "examples": 12}
    assert multiprocessing.active_children() == []
    assert len(pids) == workers
    assert not shared_memory_of(pids)


def test_a_worker_that_must_be_killed_leaves_no_shared_memory():
    form = lambda index: np.full([64, 64], index, np.float32)  # noqa: E731
    running = RunningLoader(DataLoader(Numbers(64, form), num_workers=1), counted=False)
    next(running)
    (worker,) = multiprocessing.active_children()
    os.kill(worker.pid, signal.SIGSTOP)  # it ends by nothing but SIGKILL
    running.close(timeout=0)
    assert not worker.is_alive()
    assert not shared_memory_of([worker.pid])


def test_workers_end_where_the_run_fails_and_where_nothing_was_drawn():
    def fail(state):
        raise KeyboardInterrupt

    loader = DataLoader(Numbers(), batch_size=2, num_workers=2)
    for failing in (Observer(on_batch_begin=fail), Observer(on_pass_begin=fail)):
        with pytest.raises(KeyboardInterrupt):
            Runner(DataProvider(loader), failing).run(passes=1)
    assert multiprocessing.active_children() == []


def test_workers_are_left_to_a_thread_and_no_handler_to_the_process():
    found, before = [], signal.getsignal(signal.SIGCHLD)
    loader = DataLoader(Numbers(4), batch_size=2, num_workers=2)
    thread = threading.Thread(target=lambda: found.extend(numbers(loader)))
    thread.start()
    thread.join(PATIENCE)
    assert found == [[0, 1], [2, 3]]
    assert signal.getsignal(signal.SIGCHLD) is before


KILLED = """
import multiprocessing, os, signal, sys
import numpy as np
from onion import DataProvider, Observer, Runner
from tests.data.loaders import Numbers
from paddle.io import DataLoader

end_of_run, held = os.pipe()

def form(index):
    if sys.argv[1] == "making" and index >= 12:
        os.read(end_of_run, 1)
    return np.zeros([64, 64], "float32")

def wait(state):
    if state.step == 3:
        print(*[worker.pid for worker in multiprocessing.active_children()], flush=True)
        signal.pause()

loader = DataLoader(Numbers(1000, form), batch_size=4, num_workers=2, worker_init_fn=lambda worker: os.close(held))
Runner(DataProvider(loader), Observer(on_batch_end=wait)).run(passes=1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers_are", ["waiting", "making"])
def test_workers_end_with_a_run_that_is_killed(workers_are):
    """Paddle's own wait for it for ever, or leave shared memory if they make a batch just then."""
    command = [sys.executable, "-c", KILLED, workers_are]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as run:
        workers = run.stdout.readline().split()
        run.kill()
        assert run.stdout.read() == ""  # not before all who could write into it are gone
    assert len(workers) == 2
    assert not shared_memory_of([run.pid, *workers])


def test_workers_do_not_collect_the_garbage_of_an_earlier_pass():
    """Its iterator would wait, in the worker, for threads that are not there: one start in fifty hung for ever."""
    gc.disable()
    try:
        left = iter(DataLoader(Numbers(64), batch_size=2, num_workers=1, timeout=1))
        next(left)
        left._try_shutdown_all()
        left._thread.join(PATIENCE)
        left.itself = left
        del left
        loader = DataLoader(Numbers(2), batch_size=2, num_workers=1, worker_init_fn=lambda worker: gc.collect())
        there = PaddleBatches(loader, timeout=PATIENCE).batches(0)
        assert next(there).tolist() == [0, 1]
        there.close()
    finally:
        gc.enable()
        gc.collect()
