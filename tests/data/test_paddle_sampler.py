"""The order of a DataLoader's pass: a function of seed and pass, entered anywhere without loading what is skipped."""

import random
from itertools import chain

import numpy as np
import pytest

from tests.data.loaders import FORKS, WORKERS, Numbers, numbers

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


class Shuffled:
    """A batch sampler of one's own that shuffles when it begins, and is told nothing."""

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


def test_a_sampler_that_counts_by_itself_counts_on():
    sampler = Shuffled()
    loader = DataLoader(Numbers(), batch_sampler=sampler)
    assert numbers(loader, 0) != numbers(loader, 1)
    assert sampler.begun == 2


@WORKERS
@pytest.mark.parametrize("fail_at", [0, 3])
def test_an_error_of_a_sampler_comes_out(workers, fail_at):
    """Paddle's thread would die of it, and the run wait for ever."""
    with pytest.raises(LookupError, match="no more numbers"):
        numbers(DataLoader(Numbers(), batch_sampler=Shuffled(fail_at), num_workers=workers))
