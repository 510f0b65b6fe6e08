"""A whole run of an onion in a child."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Protocol, TypeAlias

import numpy as np

from killing.child import End, Tell, live
from killing.files import FatalFiles
from killing.points import Point
from killing.reaper import Reaper
from killing.witness import witnessed
from onion import Runner
from onion.checkpointing.atomic_files import through
from onion.checkpointing.checkpoint import steps_in


class Kind(Protocol):
    """An onion that can be made again and again, always the same."""

    @property
    def passes(self) -> int | None:
        """How far ``Runner.run`` goes."""

    @property
    def steps(self) -> int | None:
        """How far ``Runner.run`` goes."""

    def make(self, folder: Path) -> Runner:
        """Compose it; all that it writes is in the folder."""


Onions: TypeAlias = Mapping[str, Kind]


def run(onion: Kind, folder: Path, point: Point | None, limit: float) -> End:
    """Run an onion to its end, or to a point; a child that hangs is late.

    Args:
        onion: what to run.
        folder: its folder; what it prints is beside it, in ``words_of(folder)``.
        point: where it dies, or None.
        limit: seconds after which it hangs.
    """

    def work(tell: Tell) -> None:
        begun = perf_counter()
        reaper = Reaper(point, tell)
        with through(FatalFiles(reaper, folder)):
            seed(0)  # as a script does at its top
            runner = witnessed(onion.make(folder), reaper)
            if steps_in(folder):
                seed(1)  # what a run goes on with, it has to bring from its checkpoint
            runner.run(onion.passes, onion.steps)
        tell({"census": {**reaper.seen, "clock": perf_counter() - begun}})

    return live(work, words_of(folder), limit, point.number if point and point.by_clock else None)


def words_of(folder: Path) -> Path:
    """Return the file with what the runs of a folder printed."""
    return folder.with_name(f"{folder.name}.txt")


def seed(seed: int) -> None:
    """Set the random generators of Python, numpy and Paddle."""
    random.seed(seed)
    np.random.seed(seed)
    if "paddle" in sys.modules:
        sys.modules["paddle"].seed(seed)
