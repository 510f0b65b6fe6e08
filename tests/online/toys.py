"""What the tests of online learning share: a source in memory, the inside of a run, its files and threads."""

import json
import threading

import paddle
import pytest

from onion import GradientMachine, ParameterUpdater
from onion.errors import DataError
from onion.http.refused import Refused
from onion.online.sources.source import Sample


class Line:
    """A source: samples in a list. Every read that finds nothing calls ``come``, and none waits."""

    def __init__(self, samples=(), come=None):
        self.samples, self.come = list(samples), come
        self.position, self.committed, self.closed, self.dry, self.reads = "", "", 0, 0, []

    def read(self, n, timeout):
        self.reads.append((n, timeout))
        begin = int(self.position or 0)
        if begin > len(self.samples):
            raise DataError("the line is shorter than this")
        if begin == len(self.samples) and self.come is not None:
            self.come(self)
        self.dry = self.dry + 1 if begin == len(self.samples) else 0
        if self.dry > 100_000:
            raise AssertionError("nothing comes any more, and the test waits for it")
        chosen = self.samples[begin : begin + n]
        self.position = str(begin + len(chosen))
        return [Sample(data, str(begin + place)) for place, data in enumerate(chosen, 1)]

    def commit(self, position):
        self.committed = position

    def waiting(self):
        return len(self.samples) - int(self.position or 0)

    def close(self):
        self.closed += 1


def learning(network, rate=0.05):
    """Return the items that train a network by SGD."""
    return [ParameterUpdater(paddle.optimizer.SGD(rate, parameters=network.parameters())), GradientMachine(network)]


class Each:
    """A metric that calls ``update(outputs, batch)`` for each batch, and has no result."""

    def __init__(self, update):
        self.update = update

    def reset(self): ...

    def result(self):
        return {}


def rows_in(path):
    """Return the rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def submissions(executor):
    """Return an event that is set when work is submitted to a BoundaryExecutor."""
    submit, submitted = executor.submit, threading.Event()

    def submit_and_set(work):
        future = submit(work)
        submitted.set()
        return future

    executor.submit = submit_and_set
    return submitted


def refusal(call, *arguments):
    """Return the status and the reason with which a call is refused."""
    with pytest.raises(Refused) as refused:
        call(*arguments)
    return refused.value.status, str(refused.value)
