"""GivenBatches: a paddle.io.DataLoader is taken as what it is, with real workers."""

import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from onion import DataError, DataProvider, Observer, Runner
from onion.data.given_batches import GivenBatches
from onion.data.loader import Loader
from tests.patience import PATIENCE

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle
from paddle.io import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedBatchSampler,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # by Paddle, with Python 3.12

SHARED = Path("/dev/shm")

WORKERS = pytest.mark.parametrize("workers", [0, 2])


class Numbers(Dataset):
    """The numbers below n, each as ``form`` makes it."""

    def __init__(self, n=10, form=np.float32):
        super().__init__()
        self.n, self.form = n, form

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        return self.form(index)


class Stream(IterableDataset):
    def __init__(self, n=10):
        super().__init__()
        self.n, self.read = n, 0

    def __iter__(self):
        for number in range(self.n):
            self.read += 1
            yield np.float32(number)


def batches(loader, pass_id=0, start=0, **settings):
    """The batches of a pass, whose workers and threads are gone afterwards."""
    there = GivenBatches(loader, **settings).batches(pass_id, start)
    try:
        return list(there)
    finally:
        there.close()
        assert multiprocessing.active_children() == []


def numbers(loader, *args, **settings):
    return [batch.tolist() for batch in batches(loader, *args, **settings)]


# -- what it gives -----------------------------------------------------------------------------------------------------


@WORKERS
@pytest.mark.parametrize("prefetch", [0, 2])
def test_the_batches_are_those_of_the_loader_in_its_order(workers, prefetch):
    loader = DataLoader(Numbers(), batch_size=4, num_workers=workers)
    assert numbers(loader, prefetch=prefetch) == [batch.tolist() for batch in loader]
    assert numbers(DataLoader(Numbers(), batch_size=4, drop_last=True, num_workers=workers)) == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
    ]


@WORKERS
def test_a_network_is_given_the_batches_as_they_are_and_no_batch_of_batches(workers):
    """A network that takes any shape trained on (8, 32, 1, 16, 16), without a word."""
    seen = []
    images = Numbers(64, lambda index: np.full([1, 16, 16], index, np.float32))
    provider = DataProvider(DataLoader(images, batch_size=32, num_workers=workers))
    state = Runner(Observer(on_batch_begin=lambda state: seen.append(state.batch.shape)), provider).run(passes=1)
    assert seen == [[32, 1, 16, 16]] * 2
    assert state.step == 2
    assert provider.readings() == {"examples": 64}


@WORKERS
def test_fields_of_every_kind(workers):
    def form(index):
        return {"x": np.ones(3, np.float32), "pair": (index, np.zeros(2)), "name": f"n{index}"}

    first, last = batches(DataLoader(Numbers(5, form), batch_size=3, num_workers=workers))
    assert first["x"].shape == [3, 3]
    assert isinstance(first["pair"], tuple)  # of a list Accumulate would take the length for the number of examples
    assert [each.shape for each in last["pair"]] == [[2], [2, 2]]
    assert first["name"] == ["n0", "n1", "n2"]


@WORKERS
def test_texts_alone(workers):
    """Paddle's DataLoader itself takes such a batch for the end of the pass."""
    assert batches(DataLoader(Numbers(3, str), batch_size=2, num_workers=workers)) == [["0", "1"], ["2"]]


@WORKERS
def test_a_dataset_of_batches(workers):
    form = lambda index: (np.full([2 + index, 3], index), np.arange(2 + index))  # noqa: E731
    there = GivenBatches(DataLoader(Numbers(3, form), batch_size=None, num_workers=workers)).batches(0, 1)
    assert [batch[0].shape for batch in there] == [[3, 3], [4, 3]]
    assert there.examples == 7
    there.close()


@WORKERS
def test_collate_and_worker_init_are_the_loaders(workers):
    collate = lambda examples: {"sum": np.array(sum(examples)), "by": [os.environ.get("BY")]}  # noqa: E731
    init = lambda worker: os.environ.update(BY="worker")  # noqa: E731
    loader = DataLoader(Numbers(4), batch_size=2, collate_fn=collate, num_workers=workers, worker_init_fn=init)
    assert [(float(each["sum"]), each["by"]) for each in batches(loader)] == [
        (sum_, ["worker" if workers else None]) for sum_ in (1.0, 5.0)
    ]


def test_the_loader_is_left_as_it_was():
    sampler = DistributedBatchSampler(Numbers(), 4, num_replicas=1, rank=0, shuffle=True)
    loader = DataLoader(Numbers(), batch_sampler=sampler)
    before = vars(loader).copy()
    numbers(loader, 3)
    assert vars(loader) == before
    assert sampler.epoch == 0


# -- order -------------------------------------------------------------------------------------------------------------


def sampled(sampler, batch_size=4):
    return DataLoader(Numbers(), batch_sampler=BatchSampler(sampler=sampler, batch_size=batch_size))


SHUFFLED = {
    "shuffle": lambda: DataLoader(Numbers(), batch_size=4, shuffle=True),
    "replacement": lambda: sampled(RandomSampler(Numbers(), replacement=True)),
    "weighted": lambda: sampled(WeightedRandomSampler(np.arange(1.0, 11.0), 10)),
    "subset": lambda: sampled(SubsetRandomSampler([1, 3, 5, 7, 9])),
    "distributed": lambda: DataLoader(
        Numbers(), batch_sampler=DistributedBatchSampler(Numbers(), 2, num_replicas=2, rank=1, shuffle=True)
    ),
}


@pytest.mark.parametrize("kind", SHUFFLED)
def test_the_order_is_a_function_of_seed_and_pass_and_moves_no_generator(kind):
    def order(pass_id, start=0, seed=7):
        np.random.seed(random.randrange(1000))
        before = np.random.get_state()[1].tolist()
        found = numbers(SHUFFLED[kind](), pass_id, start, seed=seed)
        assert np.random.get_state()[1].tolist() == before
        return found

    first = order(0)
    assert order(0) == first != order(1)
    assert [order(1, start) for start in range(3)] == [order(1)[start:] for start in range(3)]
    assert (order(0, seed=8) == first) == (kind == "distributed")  # whose ranks have to agree
    if kind == "shuffle":
        assert sorted(chain(*first)) == list(range(10))


def test_skipped_batches_are_not_read():
    read = []
    loader = DataLoader(Numbers(10, lambda index: read.append(index) or np.float32(index)), batch_size=4)
    assert numbers(loader, 0, 2) == [[8, 9]]
    assert read == [8, 9]


class Halves:
    """A batch sampler of one's own, shuffled by its epoch as Paddle's distributed one is."""

    epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        self.epoch += 1  # as those do that count by themselves
        yield from np.random.RandomState(self.epoch).permutation(10).reshape(2, 5).tolist()

    def __len__(self):
        return 2


@WORKERS
def test_a_sampler_of_ones_own_is_entered_by_drawing_again_and_told_the_pass(workers):
    read = []
    form = (lambda index: read.append(index) or np.float32(index)) if not workers else np.float32
    loader = DataLoader(Numbers(10, form), batch_sampler=Halves(), num_workers=workers)
    whole = numbers(loader, 1)
    assert whole != numbers(loader, 0)
    read.clear()
    assert numbers(loader, 1, 1) == whole[1:]
    assert read == ([] if workers else whole[1])


def test_workers_draw_the_same_numbers_in_a_pass_that_is_entered_in_the_middle():
    draw = lambda index: np.array([random.random(), np.random.rand(), float(paddle.rand([]))])  # noqa: E731
    loader = DataLoader(Numbers(10, draw), batch_size=2, num_workers=2)
    whole = numbers(loader, 1)
    assert len({number for batch in whole for example in batch for number in example}) == 30
    assert numbers(loader, 1, 3) == whole[3:]
    assert numbers(DataLoader(Numbers(10, draw), batch_size=2, num_workers=1), 1, 1) == whole[1:]
    assert numbers(loader, 2) != whole


@WORKERS
def test_a_stream_is_skipped_by_loading_which_is_said(workers, caplog):
    stream = Stream()
    loader = DataLoader(stream, batch_size=4, num_workers=workers)
    whole = numbers(loader)
    assert caplog.messages == []
    assert numbers(loader, 0, 2) == whole[2:]
    assert [text.partition(", since")[0] for text in caplog.messages] == ["resuming loads and drops 2 batches"]
    with pytest.raises(DataError, match=r"cannot go on after batch 9 of this pass: it has \d batches; did the data"):
        numbers(loader, 0, 9)


def test_a_subclass_gives_what_it_gives(caplog):
    class Doubled(DataLoader):
        def __iter__(self):
            for batch in super().__iter__():
                yield [2 * batch, batch]

    found = batches(Doubled(Numbers(5), batch_size=2), 0, 1)
    assert [(double.tolist(), own.tolist()) for double, own in found] == [([4, 6], [2, 3]), ([8], [4])]
    assert "resuming loads and drops 1 batches" in caplog.text


# -- errors and ends ---------------------------------------------------------------------------------------------------


def fail_at_5(index):
    if index == 5:
        raise ValueError("a broken picture")
    return np.float32(index)


@WORKERS
def test_an_error_in_a_dataset_comes_at_its_batch_and_says_where(workers):
    there = GivenBatches(DataLoader(Numbers(8, fail_at_5), batch_size=2, num_workers=workers)).batches(0)
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
    with pytest.raises(
        DataError,
        match=r"^data_provider, pass 0, batch \d .*: a worker of the DataLoader \(process \d+\) died, killed "
        "by SIGKILL",
    ):
        runner.run(passes=1)
    assert len(seen) <= 2
    assert multiprocessing.active_children() == []


@WORKERS
@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_pass_that_is_left_early_leaves_no_worker_and_no_shared_memory(workers, prefetch):
    before = set(SHARED.iterdir())
    form = lambda index: np.full([64, 64], index, np.float32)  # noqa: E731
    loader = DataLoader(Numbers(64, form), batch_size=4, num_workers=workers)
    stop = Observer(on_batch_end=lambda state: state.stop("enough") if state.step == 3 else None)
    provider = DataProvider(loader, prefetch=prefetch)
    state = Runner(stop, provider).run(passes=1)
    assert state.step == 3
    assert provider.state_dict() == {"batch": 3, "examples": 12}
    assert multiprocessing.active_children() == []
    del state
    assert set(SHARED.iterdir()) <= before


def test_workers_end_where_the_run_fails_and_where_nothing_was_drawn():
    def fail(state):
        raise KeyboardInterrupt

    loader = DataLoader(Numbers(), batch_size=2, num_workers=2)
    with pytest.raises(KeyboardInterrupt):
        Runner(DataProvider(loader), Observer(on_batch_begin=fail)).run(passes=1)
    with pytest.raises(KeyboardInterrupt):
        Runner(DataProvider(loader), Observer(on_pass_begin=fail)).run(passes=1)
    assert multiprocessing.active_children() == []


def test_workers_are_left_to_a_thread_and_no_handler_to_the_process():
    found, before = [], signal.getsignal(signal.SIGCHLD)
    loader = DataLoader(Numbers(4), batch_size=2, num_workers=2)
    thread = threading.Thread(target=lambda: found.extend(numbers(loader)))
    thread.start()
    thread.join(PATIENCE)
    assert found == [[0, 1], [2, 3]]
    assert signal.getsignal(signal.SIGCHLD) is before


def test_workers_end_with_a_run_that_is_killed():
    """Paddle's own wait for it for ever."""
    before, script = set(SHARED.iterdir()), Path(__file__).with_name("killed_loader.py")
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, cwd=script.parents[2]) as run:
        workers = run.stdout.readline().split()
        run.kill()
        assert run.stdout.read() == ""  # not before all who could write into it are gone
    assert len(workers) == 2
    assert set(SHARED.iterdir()) <= before


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
        there = GivenBatches(loader, patience=PATIENCE).batches(0)
        assert next(there).tolist() == [0, 1]
        there.close()
    finally:
        gc.enable()
        gc.collect()


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_loader_without_a_batch():
    with pytest.raises(DataError, match="the DataLoader has no batch"):
        GivenBatches(DataLoader(Numbers(3), batch_size=4, drop_last=True))
    with pytest.raises(DataError, match="the DataLoader gave no batch in this pass"):
        batches(DataLoader(Stream(0)))


@pytest.mark.parametrize(
    "given", [{"batch_size": 32}, {"shuffle": True}, {"drop_last": True}, {"length": len}, {"collate": list}]
)
def test_what_the_loader_says_is_not_said_again(given):
    (name,) = given
    with pytest.raises(DataError, match=f"a DataLoader makes its own batches: give {name}= to it"):
        DataProvider(DataLoader(Numbers(), batch_size=2), **given)


def test_arguments_out_of_their_range():
    with pytest.raises(ValueError, match="seed has to be an integer from 0"):
        GivenBatches(DataLoader(Numbers()), seed=-1)
    with pytest.raises(ValueError, match="patience= needs the background thread"):
        GivenBatches(DataLoader(Numbers()), prefetch=0, patience=1)


class TorchLoader:
    """As torch's, which is not installed here."""

    def __iter__(self):
        return iter([[1]])

    def __len__(self):
        return 1


TorchLoader.__module__, TorchLoader.__name__ = "torch.utils.data.dataloader", "DataLoader"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (lambda: DataLoader(Numbers()), "a DataLoader of paddle gives batches, not examples; DataProvider takes"),
        (lambda: iter(DataLoader(Numbers())), "gives batches, not examples; give the DataLoader itself"),
        (lambda: BatchSampler(Numbers()), "a BatchSampler of paddle gives batches, not examples"),
        (lambda: TorchLoader(), "a DataLoader of torch gives batches, not examples; its tensors are no arrays"),
        (lambda: paddle.batch(lambda: iter([1]), 2), "paddle.batch makes batches"),
    ],
)
def test_other_givers_of_batches_are_refused_and_not_stacked(given, says):
    with pytest.raises(DataError, match=says):
        Loader(given())


def test_what_is_told_of_it():
    told = GivenBatches(DataLoader(Numbers(), batch_size=4, shuffle=True), seed=3)
    assert told.settings == {
        "batches": "DataLoader",
        "seed": 3,
        "batch_size": 4,
        "drop_last": False,
        "sampler": ["BatchSampler", "RandomSampler"],
    }
    assert (told.fingerprint, told.batches_per_pass) == ("10 examples", 3)
    assert GivenBatches(DataLoader(Stream())).batches_per_pass is None
