"""What tests of DataLoaders share: datasets, and the batches of a pass, after which no worker is left."""

import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from onion.data.paddle_loader import PaddleBatches

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
from paddle.io import Dataset, IterableDataset

FORKS = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
"""Python 3.12 warns of what Paddle does."""

WORKERS = pytest.mark.parametrize("workers", [0, 2])


def shared_memory_of(workers):
    """The segments that these processes left: ``paddle_PID_...``; other runs of the tests have theirs there, too."""
    return [path for pid in workers for path in Path("/dev/shm").glob(f"paddle_{pid}_*")]


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
    there = PaddleBatches(loader, **settings).batches(pass_id, start)
    try:
        return list(there)
    finally:
        there.close()
        assert multiprocessing.active_children() == []


def numbers(loader, *args, **settings):
    return [batch.tolist() for batch in batches(loader, *args, **settings)]
