"""A run that gets Ctrl-C while it saves, is run again in this process, and is compared with an uninterrupted one."""

from __future__ import annotations

import faulthandler
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from threading import Lock, current_thread, main_thread
from types import FrameType, ModuleType
from typing import IO, Any

from onion import Runner, RunnerItem, Saver, State
from onion.checkpointing import atomic_files, checkpoint, lock, run_state, writer
from onion.checkpointing.atomic_files import Files, through
from onion.checkpointing.checkpoint import steps_in
from onion.items import saver
from scripts.crash_test.attempt import Kind, composed
from scripts.crash_test.differences import differences, torn
from scripts.crash_test.points import halve

MODES: Mapping[str, bool] = {"foreground": False, "background": True}
"""How checkpoints are written -> ``Saver(background=...)``."""

WAYS = ("operation", "line")
"""What Ctrl-C comes before."""

MAX_DISTANCE = 12
"""Operations between one interrupt and the next, at most."""


@dataclass(frozen=True)
class Attempt:
    """What came of one: interrupts, torn checkpoints, errors of runs that should have continued, other results."""

    onion: str
    mode: str
    way: str
    interrupts: int
    torn: tuple[str, ...]
    refused: tuple[str, ...]
    other: tuple[str, ...]

    @property
    def complaints(self) -> tuple[str, ...]:
        return self.torn + self.refused + self.other


TIMEOUT = 600
"""Seconds after which an attempt hangs: the process ends and prints where its threads are."""


class Look(RunnerItem):
    """Where a run begins, its Saver has the folder, and nothing writes there: then every checkpoint has to be whole."""

    passive = True

    def __init__(self, folder: Path, found: list[str]) -> None:
        self._folder, self._found = folder, found

    def initialize(self, state: State) -> None:
        self._found += torn(self._folder)


class Place:
    """Where the runs of an onion are that saves in one mode, and how they go."""

    def __init__(self, name: str, onion: Kind, mode: str, folder: Path) -> None:
        self.name, self.mode, self._onion, self._folder = name, mode, onion, folder / f"{name}-{mode}"
        self._whole = self._folder / "whole"
        disk, lines = InterruptingFiles((), random.Random(0)), Lines(0)
        with through(disk):
            self._run(self._made(self._whole, []), lines)
        self._events = {"operation": disk.count, "line": lines.count}

    def interrupt(self, way: str, number: int, seed: str) -> Attempt:
        """Interrupt a run at points that are drawn, as often as it gets to one; start it again each time."""
        chance = random.Random(seed)
        folder = self._folder / str(number)
        at = chance.randint(1, self._events[way])
        further = [chance.randint(1, MAX_DISTANCE) for _ in range(chance.randrange(3))] if way == "operation" else []
        operations = [at + sum(further[:some]) for some in range(len(further) + 1)] if way == "operation" else []
        disk = InterruptingFiles(operations, chance)
        lines = Lines(at if way == "line" else 0)
        ctrl_c = CtrlC()
        found: list[str] = []
        refused: tuple[str, ...] = ()
        interrupts = 0
        faulthandler.dump_traceback_later(TIMEOUT, exit=True)
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
        return Attempt(self.name, self.mode, way, interrupts, tuple(found), refused, other)

    def _made(self, folder: Path, found: list[str]) -> Runner:
        runner = composed(self._onion, folder)
        saver = runner[Saver]
        saver.every, saver.async_save = 1, MODES[self.mode]
        return runner.insert_after(runner.items[-1], Look(folder, found))

    def _run(self, runner: Runner, lines: Lines) -> None:
        with lines.watched():
            runner.run(self._onion.passes, self._onion.steps)


class CtrlC:
    """A KeyboardInterrupt for each SIGINT that comes while something runs; one that comes later hits nothing."""

    def __init__(self) -> None:
        self._running = False

    @contextmanager
    def answered(self) -> Iterator[None]:
        before = signal.signal(signal.SIGINT, self._answer)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _answer(self, number: int, frame: FrameType | None) -> None:
        if self._running:
            raise KeyboardInterrupt

    def survived(self, run: Callable[[], object]) -> bool:
        """Run something; tell whether it came to its end before an interrupt did."""
        try:
            try:
                self._running = True
                run()
                self._running = False
                return True
            except KeyboardInterrupt:
                self._running = False
        except KeyboardInterrupt:  # another one, at once
            self._running = False
        return False


MAX_PAUSE = 0.01
"""Seconds that an operation of a thread takes at most, so that it is still writing when the next run begins."""


class InterruptingFiles(Files):
    """The system's files, a little slower in threads, with a SIGINT before the operations of these numbers, from 1."""

    def __init__(self, at: Iterable[int], chance: Random) -> None:
        self._at, self._chance, self._lock = frozenset(at), chance, Lock()
        self.count = 0

    def write(self, file: IO[bytes], content: bytes) -> None:
        """Write the two halves apart."""
        self._step()
        super().write(file, content[: len(content) // 2])
        self._step()
        super().write(file, content[len(content) // 2 :])

    def sync(self, handle: int) -> None:
        """Pass it on: what was written is there for every process, and no power fails here."""
        self._step()

    def rename(self, source: Path, target: Path) -> None:
        self._step()
        super().rename(source, target)

    def remove(self, folder: Path) -> None:
        """Remove half of the files, then the rest."""
        self._step()
        halve(folder)
        self._step()
        super().remove(folder)

    def _step(self) -> None:
        with self._lock:
            self.count += 1
            due, pause = self.count in self._at, self._chance.random() * MAX_PAUSE
        in_a_thread = current_thread() is not main_thread()
        if due:
            os.kill(os.getpid(), signal.SIGINT)  # the main thread answers, wherever it is
        if in_a_thread:
            time.sleep(pause)


SAVING: tuple[ModuleType, ...] = (checkpoint, atomic_files, lock, writer, run_state, saver)
FILES = frozenset(module.__file__ for module in SAVING)


class Lines:
    """Counts the lines of these modules in the main thread, and interrupts it before one of them (0: none)."""

    def __init__(self, at: int) -> None:
        self._at = at
        self.count = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        return self._line if frame.f_code.co_filename in FILES else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        if event == "line":
            self.count += 1
            if self.count == self._at:
                raise KeyboardInterrupt
        return self._line
