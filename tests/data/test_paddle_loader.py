"""PaddleBatches: a paddle.io.DataLoader with real workers; the order of its pass is a function of seed and pass."""

import os
import random
from itertools import chain

import numpy as np
import pytest

from onion import DataError, DataProvider, Observer, Runner
from onion.data.loader import Loader
from onion.data.paddle_loader import PaddleBatches
from tests.data.loaders import FORKS, WORKERS, Numbers, Stream, batches, numbers

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle
from paddle.io import (
    BatchSampler,
    DataLoader,
    DistributedBatchSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

pytestmark = FORKS


@WORKERS
@pytest.mark.parametrize("prefetch", [0, 2])
def test_the_batches_are_those_of_the_loader_in_its_order(workers, prefetch):
    loader = DataLoader(Numbers(), batch_size=4, num_workers=workers)
    assert numbers(loader, prefetch=prefetch) == [batch.tolist() for batch in loader]
    full = DataLoader(Numbers(), batch_size=4, drop_last=True, num_workers=workers)
    assert numbers(full) == [[0, 1, 2, 3], [4, 5, 6, 7]]


@WORKERS
def test_a_network_is_given_the_batches_as_they_are_and_no_batch_of_batches(workers):
    """A network that takes any shape trained on (8, 32, 1, 16, 16), without a word."""
    seen = []
    images = Numbers(64, lambda index: np.full([1, 16, 16], index, np.float32))
    provider = DataProvider(DataLoader(images, batch_size=32, num_workers=workers))
    state = Runner(Observer(on_batch_begin=lambda state: seen.append(state.batch.shape)), provider).run(passes=1)
    assert seen == [[32, 1, 16, 16]] * 2
    assert state.step == 2
    assert provider.log_values() == {"examples": 64}


@WORKERS
def test_fields_of_every_kind(workers):
    def form(index):
        return {"x": np.ones(3, np.float32), "pair": (index, np.zeros(2)), "name": f"n{index}"}

    first, last = batches(DataLoader(Numbers(5, form), batch_size=3, num_workers=workers))
    assert first["x"].shape == [3, 3]
    assert isinstance(first["pair"], tuple)  # of a list Accumulate would take the length for the number of examples
    assert [each.shape for each in last["pair"]] == [[2], [2, 2]]
    assert first["name"] == ["n0", "n1", "n2"]
    # Paddle's DataLoader itself takes texts alone for the end of the pass.
    assert batches(DataLoader(Numbers(3, str), batch_size=2, num_workers=workers)) == [["0", "1"], ["2"]]


@WORKERS
def test_a_dataset_of_batches(workers):
    form = lambda index: (np.full([2 + index, 3], index), np.arange(2 + index))  # noqa: E731
    there = PaddleBatches(DataLoader(Numbers(3, form), batch_size=None, num_workers=workers)).batches(0, 1)
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


@WORKERS
def test_a_stream_is_skipped_by_loading_which_is_said(workers, caplog):
    stream = Stream()
    loader = DataLoader(stream, batch_size=4, num_workers=workers)
    whole = numbers(loader)
    assert caplog.messages == []
    assert numbers(loader, 0, 2) == whole[2:]
    assert [text.partition(", since")[0] for text in caplog.messages] == ["resuming loads and drops 2 batches"]
    with pytest.raises(DataError, match=r"cannot continue after batch 9 of this pass: it has \d batches; did the data"):
        numbers(loader, 0, 9)


def test_a_subclass_gives_what_it_gives(caplog):
    class Doubled(DataLoader):
        def __iter__(self):
            for batch in super().__iter__():
                yield [2 * batch, batch]

    found = batches(Doubled(Numbers(5), batch_size=2), 0, 1)
    assert [(double.tolist(), own.tolist()) for double, own in found] == [([4, 6], [2, 3]), ([8], [4])]
    assert "resuming loads and drops 1 batches" in caplog.text


def test_a_loader_without_a_batch_and_arguments_out_of_range():
    with pytest.raises(DataError, match="the DataLoader has no batch"):
        PaddleBatches(DataLoader(Numbers(3), batch_size=4, drop_last=True))
    with pytest.raises(DataError, match="the DataLoader returned no batch in this pass"):
        batches(DataLoader(Stream(0)))
    with pytest.raises(ValueError, match="seed must be an integer >= 0"):
        PaddleBatches(DataLoader(Numbers()), seed=-1)
    with pytest.raises(ValueError, match="timeout= needs the background thread"):
        PaddleBatches(DataLoader(Numbers()), prefetch=0, timeout=1)


@pytest.mark.parametrize(
    "given",
    [
        {"batch_size": 32},
        {"tokens_per_batch": 32},
        {"shuffle": True},
        {"drop_last": True},
        {"lengths": len},
        {"collate": list},
        {"weights": [1]},
        {"shuffle_buffer": 8},
        {"num_workers": 2},
    ],
)
def test_what_the_loader_says_is_not_said_again(given):
    (name,) = given
    with pytest.raises(DataError, match=f"a DataLoader makes its own batches: pass {name}= to it"):
        DataProvider(DataLoader(Numbers(), batch_size=2), **given)


TorchLoader = type("DataLoader", (list,), {"__module__": "torch.utils.data.dataloader"})
"""As torch's, which is not installed here."""


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (lambda: DataLoader(Numbers()), "a DataLoader of paddle yields batches, not examples; DataProvider takes"),
        (lambda: iter(DataLoader(Numbers())), "yields batches, not examples; give the DataLoader itself"),
        (lambda: BatchSampler(Numbers()), "a BatchSampler of paddle yields batches, not examples"),
        (TorchLoader, "a DataLoader of torch yields batches, not examples; its tensors are no arrays"),
        (lambda: paddle.batch(lambda: iter([1]), 2), "paddle.batch makes batches"),
    ],
)
def test_other_givers_of_batches_are_refused_and_not_stacked(given, says):
    with pytest.raises(DataError, match=says):
        Loader(given())


def test_what_is_told_of_it():
    told = PaddleBatches(DataLoader(Numbers(), batch_size=4, shuffle=True), seed=3)
    assert told.settings == {
        "batches": "DataLoader",
        "seed": 3,
        "batch_size": 4,
        "drop_last": False,
        "sampler": ["BatchSampler", "RandomSampler"],
    }
    assert (told.fingerprint, told.batches_per_pass) == ("10 examples", 3)
    assert PaddleBatches(DataLoader(Stream())).batches_per_pass is None


# -- the order of a pass, entered anywhere -----------------------------------------------------------------------------


def sampled(sampler):
    return DataLoader(Numbers(), batch_sampler=BatchSampler(sampler=sampler, batch_size=4))


def noting(read):
    return lambda index: read.append(index) or np.float32(index)


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
    read = []
    assert numbers(DataLoader(Numbers(10, noting(read)), batch_size=4), 0, 2) == [[8, 9]]
    assert read == [8, 9], "skipped batches are not read"


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
    loader = DataLoader(
        Numbers(10, np.float32 if workers else noting(read)), batch_sampler=Halves(), num_workers=workers
    )
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


class Shuffled:
    """A batch sampler of one's own that shuffles when it begins, and has no set_epoch."""

    def __init__(self, fail_at=None):
        self.fail_at, self.begun = fail_at, 0

    def __iter__(self):
        self.begun += 1
        order = np.random.permutation(10) if self.begun % 2 else random.sample(range(10), 10)
        for batch in range(5):
            if batch == self.fail_at:
                raise LookupError("no more numbers")
            yield [int(each) for each in order[2 * batch : 2 * batch + 2]]


@WORKERS
def test_a_sampler_of_ones_own_that_shuffles_as_it_begins_does_so_alike(workers):
    def order(pass_id, start=0):
        return numbers(DataLoader(Numbers(), batch_sampler=Shuffled(), num_workers=workers), pass_id, start)

    assert order(0) == order(0) != order(1)
    assert [order(1, start) for start in (3, 5)] == [order(1)[3:], []]
    sampler = Shuffled()  # counts its own passes
    loader = DataLoader(Numbers(), batch_sampler=sampler)
    assert numbers(loader, 0) != numbers(loader, 1)
    assert sampler.begun == 2


@WORKERS
@pytest.mark.parametrize("fail_at", [0, 3])
def test_an_error_of_a_sampler_comes_out(workers, fail_at):
    """Paddle's thread would die of it, and the run wait for ever."""
    with pytest.raises(LookupError, match="no more numbers"):
        numbers(DataLoader(Numbers(), batch_sampler=Shuffled(fail_at), num_workers=workers))
