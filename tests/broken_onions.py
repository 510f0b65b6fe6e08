"""Onions that do not survive a kill, each for one reason, and one that does: what ``make crash-test`` must tell apart.

None of them needs Paddle, so that a process with one of them starts at once.
"""

import json
import random
import shutil
import threading
from pathlib import Path

import attrs
import numpy as np

from onion import DataProvider, Logger, Runner, RunnerItem, Saver
from onion.checkpointing import atomic_files
from onion.checkpointing.checkpoint import folder_of, steps_in


class Walk(RunnerItem):
    """A point that is pushed about by the batches and by chance."""

    def __init__(self, chance=random):
        self.chance = chance
        self.place = np.zeros(4)

    def push(self):
        return self.chance.random()

    def on_batch(self, state):
        self.place += state.batch.sum() * self.push()
        state.loss = float(self.place.sum())

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, saved):
        self.place = saved["place"].copy()


class Forgetful(Walk):
    """What it counts decides where it goes, and is not saved."""

    count = 0

    def push(self):
        self.count += 1
        return self.count


class DrawnOnce(Walk):
    """What it draws when a run begins is not saved."""

    def initialize(self, state):
        self.stride = random.random()

    def push(self):
        return self.stride


class Notebook(RunnerItem):
    """A log whose rows are not cut when the run goes on before them."""

    def __init__(self, path):
        self.path = path

    def on_batch(self, state):
        with self.path.open("a") as file:
            file.write(json.dumps({"step": state.step}) + "\n")


def onion(folder, *items, walk=Walk):
    return Runner(
        Saver(folder, every=3),
        Logger(folder / "metrics.jsonl", every=2),
        *items,
        DataProvider(np.arange(40.0), 4, shuffle=True, prefetch=0),
        walk(),
    )


def slow_rename(self, source, target):
    """Rename as some network disks do: the new folder is there before its files are."""
    if source.is_file():
        source.replace(target)
        return
    target.mkdir()
    for file in sorted(source.iterdir()):
        atomic_files.rename(file, target / file.name)
    source.rmdir()


def on_a_torn_disk(folder):
    atomic_files.Files.rename = slow_rename
    return onion(folder)


def on_an_untidy_disk(folder):
    atomic_files.Files.remove = lambda self, folder: None
    return onion(folder)


def without_its_newest(folder):
    for step in steps_in(folder)[-1:]:
        shutil.rmtree(folder_of(folder, step))
    return onion(folder)


def stuck_when_it_goes_on(folder):
    if steps_in(folder):
        threading.Event().wait()
    return onion(folder)


def broken_when_it_goes_on(folder):
    if steps_in(folder):
        raise RuntimeError("cannot go on")
    return onion(folder)


@attrs.frozen
class Kind:
    make: object
    passes: int | None = 2
    steps: int | None = None


ONIONS = {
    "whole": Kind(onion),
    "short": Kind(onion, passes=None, steps=13),
    "forgetful": Kind(lambda folder: onion(folder, walk=Forgetful)),
    "drawn once": Kind(lambda folder: onion(folder, walk=DrawnOnce)),
    "by chance": Kind(lambda folder: onion(folder, walk=lambda: Walk(random.SystemRandom()))),
    "two logs": Kind(lambda folder: onion(folder, Notebook(Path(folder) / "notes.jsonl"))),
    "torn": Kind(on_a_torn_disk),
    "untidy": Kind(on_an_untidy_disk),
    "set back": Kind(without_its_newest),
    "stuck": Kind(stuck_when_it_goes_on),
    "broken": Kind(broken_when_it_goes_on),
}
