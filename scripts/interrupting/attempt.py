"""A run interrupted, started again in the same process, and held against one that was not."""

from __future__ import annotations

import faulthandler
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from killing.differences import differences, torn
from killing.run import Kind, seed

from interrupting.ctrl_c import CtrlC
from interrupting.disk import InterruptingFiles
from interrupting.lines import Lines
from onion import Runner, RunnerItem, Saver, State
from onion.checkpointing.atomic_files import through
from onion.checkpointing.checkpoint import steps_in

MODES: Mapping[str, bool] = {"foreground": False, "background": True}
"""How checkpoints are written -> ``Saver(background=...)``."""

WAYS = ("operation", "line")
"""What Ctrl-C comes before."""

NEXT = 12
"""So many operations further on the next one may come, at most."""


@dataclass(frozen=True)
class GradientRollback:
    """What came of one.

    Attributes:
        onion: its name.
        mode: how checkpoints were written.
        way: what Ctrl-C came before.
        number: which attempt it is.
        interrupts: how many there were.
        torn: what is wrong with checkpoints that have a final name.
        refused: the errors of runs that should have gone on.
        other: in what the run came to something else.
    """

    onion: str
    mode: str
    way: str
    number: int
    interrupts: int
    torn: tuple[str, ...]
    refused: tuple[str, ...]
    other: tuple[str, ...]

    @property
    def complaints(self) -> tuple[str, ...]:
        """All that is wrong."""
        return self.torn + self.refused + self.other


HANGS = 600
"""Seconds after which an attempt hangs: the process ends, and tells where its threads are."""


class Look(RunnerItem):
    """Where a run begins, its Saver has the folder, and nobody writes there: then every checkpoint has to be whole."""

    passive = True

    def __init__(self, folder: Path, found: list[str]) -> None:
        self._folder, self._found = folder, found

    def initialize(self, state: State) -> None:
        """Look."""
        self._found += torn(self._folder)


class Place:
    """Where the runs of an onion are that saves in one way, and how they go.

    Args:
        name: of the onion.
        onion: the onion.
        mode: how checkpoints are written.
        folder: for its runs.
    """

    def __init__(self, name: str, onion: Kind, mode: str, folder: Path) -> None:
        self.name, self.mode, self._onion, self._folder = name, mode, onion, folder / f"{name}-{mode}"
        self._whole = self._folder / "whole"
        disk, lines = InterruptingFiles((), random.Random(0)), Lines(0)  # noqa: S311
        with through(disk):
            self._run(self._made(self._whole, []), lines)
        self._events = {"operation": disk.count, "line": lines.count}

    def interrupt(self, way: str, number: int, seed: str) -> GradientRollback:
        """Interrupt a run at points that are drawn, as often as it gets to one; start it again each time."""
        chance = random.Random(seed)  # noqa: S311
        folder = self._folder / str(number)
        at = chance.randint(1, self._events[way])
        further = [chance.randint(1, NEXT) for _ in range(chance.randrange(3))] if way == "operation" else []
        operations = [at + sum(further[:some]) for some in range(len(further) + 1)] if way == "operation" else []
        disk = InterruptingFiles(operations, chance)
        lines = Lines(at if way == "line" else 0)
        ctrl_c = CtrlC()
        found: list[str] = []
        refused: tuple[str, ...] = ()
        interrupts = 0
        faulthandler.dump_traceback_later(HANGS, exit=True)
        with through(disk), ctrl_c.answered():
            try:
                runner = self._made(folder, found)
                while not ctrl_c.survived(partial(self._run, runner, lines)):
                    interrupts, lines = interrupts + 1, Lines(0)
                    if not (chance.random() < 0.5 and steps_in(folder)):  # else the very same onion, as in a notebook
                        runner = self._made(folder, found)
            except Exception as error:  # whatever keeps a run from going on
                refused = (f"{type(error).__name__}: {error}",)
        faulthandler.cancel_dump_traceback_later()
        other = () if found or refused else tuple(differences(folder, self._whole))
        shutil.rmtree(folder, ignore_errors=True)
        return GradientRollback(self.name, self.mode, way, number, interrupts, tuple(found), refused, other)

    def _made(self, folder: Path, found: list[str]) -> Runner:
        """Compose the onion, with checkpoints after every batch."""
        seed(0)  # as a script does at its top
        runner = self._onion.make(folder)
        if steps_in(folder):
            seed(1)  # what a run goes on with, it has to bring from its checkpoint
        saver = runner[Saver]
        saver.every, saver.background = 1, MODES[self.mode]
        return runner.insert_after(runner.items[-1], Look(folder, found))

    def _run(self, runner: Runner, lines: Lines) -> None:
        with lines.watched():
            runner.run(self._onion.passes, self._onion.steps)
