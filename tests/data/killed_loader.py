"""A run that waits to be killed in the middle of a pass, once it has told the numbers of its workers."""

import multiprocessing
import signal

import numpy as np

from onion import DataProvider, Observer, Runner

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle


class Arrays(paddle.io.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return np.zeros([64, 64], np.float32)


def wait(state):
    if state.step == 3:
        print(*[worker.pid for worker in multiprocessing.active_children()], flush=True)
        signal.pause()


loader = paddle.io.DataLoader(Arrays(), batch_size=4, num_workers=2)
Runner(DataProvider(loader), Observer(on_batch_end=wait)).run(passes=1)
