"""What workers compute in tests: a module of its own, which each worker imports quickly."""

import os
import random
import signal
from pathlib import Path

import numpy as np

from onion.data.batching import collate


def square(number):
    return number**2


def refuse_five(number):
    if number == 5:
        raise ValueError("five")
    return number


def refuse_with_its_own(number):
    class UnsendableError(Exception):
        pass

    raise UnsendableError("gone")


def die_of_five(number):
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def leave_at_five(number):
    if number == 5:
        os._exit(3)
    return number


def wait_for_the_next(given):
    """The first of two items waits for the second."""
    pipe, number = given
    if number == 0:
        return Path(pipe).read_text()
    Path(pipe).write_text("written by the second")
    return "second"


def hang(pipe):
    """Tell by a pipe that it is at work, and wait for what never comes."""
    Path(pipe).write_text("at work")
    signal.pause()


def unsendable(number):
    return lambda: number


def noisy(examples):
    """Draw while a batch is made, as masking does."""
    by = np.float32(0.01 * (random.random() + np.random.random()))
    return collate([{**example, "x": example["x"] + by} for example in examples])


class Squares:
    """Examples that are computed, and drawn: by all global generators that a worker has."""

    def __init__(self, size=14, random=False):
        self.size, self.random = size, random

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        by = random.random() + np.random.random() if self.random else 0
        return {"x": np.full(3, index**2 + by)}


class Hanging(Squares):
    """The fourth batch never comes."""

    def __getitem__(self, index):
        if index == 6:
            signal.pause()
        return super().__getitem__(index)


class Broken(Squares):
    def __getitem__(self, index):
        if index == 5:
            raise ValueError("a broken picture")
        return super().__getitem__(index)


def stream():
    return iter(range(14))


def summed(examples):
    return {"x": np.array([sum(examples) + random.random()])}


def numbers_of(examples):
    return [float(example["x"]) for example in examples]


class Anew:
    """Examples that are others in every pass: a function of pass and number.

    Args:
        examples: each has ``x``, which is disturbed.
        lengths: of the examples. Default: from 1 to as many as there are.
    """

    def __init__(self, examples, lengths=None):
        self.examples = examples
        self.lengths = np.arange(1, len(examples) + 1) if lengths is None else lengths
        self.asked = []

    def __len__(self):
        return len(self.examples)

    def of_pass(self, pass_id):
        self.asked.append(pass_id)
        return Disturbed(self.examples, pass_id)


class Disturbed:
    """The examples of one pass."""

    def __init__(self, examples, pass_id):
        self.examples, self.pass_id = examples, pass_id

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, index):
        by = np.random.default_rng([self.pass_id, index]).random()
        example = self.examples[index]
        return {**example, "x": example["x"] + np.float32(0.1 * by)}
