"""Threads that prepare batches: what tests see of them, and a source that keeps one waiting."""

import threading

import pytest

from tests.data.threads import prefetch_threads
from tests.patience import PATIENCE


class Silent:
    """A source that yields some items, and the next one only when it is released."""

    def __init__(self):
        self.items, self.waits, self.release = 1, threading.Event(), threading.Event()

    def __call__(self):
        yield from range(1, 1 + self.items)
        self.waits.set()
        assert self.release.wait(PATIENCE)
        yield 1 + self.items

    def end(self):
        self.release.set()
        for thread in prefetch_threads():
            thread.join(PATIENCE)


@pytest.fixture
def silent():
    """A source that yields 1, and 2 when it is released; at the end it is."""
    source = Silent()
    yield source
    source.end()
