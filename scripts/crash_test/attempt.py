"""A run killed, resumed, and compared with the uninterrupted one; each run is a process of its own.

The parent has imported all that is needed and has computed nothing, so it has one thread, and a forked child costs its
own work only.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import select
import shutil
import signal
import sys
import traceback
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, NoReturn, Protocol

import numpy as np

from onion import Runner
from onion.checkpointing.atomic_files import through
from onion.checkpointing.checkpoint import steps_in
from scripts.crash_test.differences import differences, torn
from scripts.crash_test.points import Census, FatalFiles, Point, Reaper, Tell, draw, kinds_in, witnessed

MAX_DRAWS = 20
"""Points behind the end of a run, after which an attempt is given up. The second of two often is, as the resumed run is
shorter."""


class Kind(Protocol):
    """An onion that can be made repeatedly, always the same; it runs for so many passes or steps."""

    @property
    def passes(self) -> int | None: ...

    @property
    def steps(self) -> int | None: ...

    def make(self, folder: Path) -> Runner:
        """Compose it; all that it writes is in the folder."""


def add_options(parser: ArgumentParser, default: str) -> None:
    parser.add_argument("--onions", default="tests.onions", help="the module that has them, by name, as ONIONS")
    parser.add_argument("--onion", action="append", help=f"only this one; may be given again; default: {default}")


def onions_of(module: str, chosen: Iterable[str]) -> dict[str, Kind]:
    onions: Mapping[str, Kind] = import_module(module).ONIONS
    if unknown := set(chosen) - onions.keys():
        sys.exit(f"{module} has no onion {', '.join(sorted(unknown))}; it has {', '.join(onions)}")
    return {name: onions[name] for name in chosen or onions}


@dataclass(frozen=True)
class Plan:
    """An attempt that is due: onion, kind of the first kill, whether there is a second one, seed of the points."""

    onion: str
    kind: str
    twice: bool
    seed: str


@dataclass(frozen=True)
class Attempt:
    """What came of one: the points where it was killed (none: it was only repeated), and what was wrong."""

    onion: str
    points: tuple[Point, ...]
    complaints: tuple[str, ...]

    @property
    def kinds(self) -> list[str]:
        return [point.kind for point in self.points]

    @property
    def failed(self) -> bool:
        return bool(self.complaints)


class Place:
    """Where the runs of an onion are, and how they go; a run hangs after ``limit`` seconds."""

    def __init__(self, name: str, onion: Kind, folder: Path, limit: float) -> None:
        self.name, self._onion, self._folder, self._limit = name, onion, folder / name, limit
        self._whole = self._folder / "whole"

    def whole(self) -> tuple[Census | None, Attempt]:
        """Run the onion without a kill, twice; return what is counted of it (None: it failed) and what differs."""
        self._folder.mkdir(parents=True, exist_ok=True)
        end = self._run(self._whole, None)
        complaints = tuple(_unless_done(end, self._whole)) or self._restart([], self._folder / "again")
        census = end.said("census")
        return (census[0] if census and not complaints else None), Attempt(self.name, (), tuple(complaints))

    def follow(self, plan: Plan, census: Census) -> Attempt:
        """Draw points until they are reached, and die there.

        A second point is drawn ever closer to the beginning, as the run that went on may have little left.
        """
        chance = random.Random(plan.seed)
        for number in range(MAX_DRAWS):
            points = [draw(census, plan.kind, chance)]
            if plan.twice:
                points.append(draw(census, chance.choice(kinds_in(census)), chance, share=0.8**number))
            attempt = self.kill(points, plan.seed)
            if attempt is not None:
                return attempt
        return Attempt(self.name, tuple(points), (f"not reached, and no other point in {MAX_DRAWS} draws",))

    def kill(self, points: Sequence[Point], name: str) -> Attempt | None:
        """Run to each point in turn, then to the end; None if a point was not reached."""
        folder = self._folder / name
        try:
            ends: list[End] = []
            for point in points:
                end = self._run(folder, point)
                if end.code == 0:
                    return None
                complaints = [*_unless_killed(end, point, folder), *torn(folder), *_unless_progress([*ends, end])]
                if complaints:
                    return Attempt(self.name, tuple(points), tuple(complaints))
                ends.append(end)
            return Attempt(self.name, tuple(points), self._restart(ends, folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            words_of(folder).unlink(missing_ok=True)

    def _restart(self, before: Iterable[End], folder: Path) -> tuple[str, ...]:
        """Run to the end; return what is wrong then."""
        end = self._run(folder, None)
        complaints = [*_unless_done(end, folder), *_unless_progress([*before, end])]
        return tuple(complaints or differences(folder, self._whole))

    def _run(self, folder: Path, point: Point | None) -> End:
        return run(self._onion, folder, point, self._limit)


def _unless_done(end: End, folder: Path) -> Iterator[str]:
    if end.late:
        yield f"hung:{_last_words(folder)}"
    elif end.code:
        yield f"ended with {end.code}:{_last_words(folder)}"


def _unless_killed(end: End, point: Point, folder: Path) -> Iterator[str]:
    if not end.killed or (end.late and not point.by_clock):
        yield from _unless_done(end, folder)


def _unless_progress(ends: Sequence[End]) -> Iterator[str]:
    """Each run has to begin where the newest checkpoint before it was, or further."""
    saved = 0
    for end in ends:
        for begun in end.said("begun"):
            if begun < saved:
                yield f"began at step {begun}, though the checkpoint of step {saved} had its final name"
        saved = max([saved, *end.said("saved")])


def _last_words(folder: Path, lines: int = 16) -> str:
    words = words_of(folder).read_text(errors="replace").splitlines()
    return "".join(f"\n      {line}" for line in words[-lines:])


def run(onion: Kind, folder: Path, point: Point | None, limit: float) -> End:
    """Run an onion to its end, or to the point where it dies; what it prints goes to ``words_of(folder)``."""

    def work(tell: Tell) -> None:
        begun = perf_counter()
        reaper = Reaper(point, tell)
        with through(FatalFiles(reaper, folder)):
            witnessed(composed(onion, folder), reaper).run(onion.passes, onion.steps)
        tell({"census": {**reaper.seen, "clock": perf_counter() - begun}})

    return live(work, words_of(folder), limit, point.number if point and point.by_clock else None)


def words_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.txt")


def composed(onion: Kind, folder: Path) -> Runner:
    """Compose an onion with the generators as a script seeds them at its top.

    A run that resumes gets another seed: whatever it needs has to come from its checkpoint.
    """
    _seed(0)
    runner = onion.make(folder)
    if steps_in(folder):
        _seed(1)
    return runner


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    if "paddle" in sys.modules:
        sys.modules["paddle"].seed(seed)


@dataclass(frozen=True)
class End:
    """How a child ended: status or minus the signal, whether the parent ended it in the end, and what it reported."""

    code: int
    late: bool
    told: list[dict[str, Any]]

    @property
    def killed(self) -> bool:
        """Whether it died by SIGKILL, its own or the parent's."""
        return self.code == -signal.SIGKILL

    def said(self, what: str) -> list[Any]:
        return [each[what] for each in self.told if what in each]


def live(work: Callable[[Tell], None], words: Path, limit: float, kill_after: float | None = None) -> End:
    """Run a function in a child process.

    The file ``words`` gets what the child prints, its traceback, and where it hangs when the limit is near. It is
    killed as hanging after ``limit`` seconds, and after ``kill_after`` seconds in any case.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _live(work, writing, words, limit)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        lines, late = _listen(pipe.fileno(), limit if kill_after is None else kill_after)
        if late:
            os.kill(child, signal.SIGKILL)
            lines += pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return End(code, late, [json.loads(line) for line in lines.splitlines()])


def _live(work: Callable[[Tell], None], writing: int, words: Path, limit: float) -> NoReturn:
    """Be the child: no ``finally`` of the parent may run in it, and no exit handler."""

    def tell(said: dict[str, Any]) -> None:
        os.write(writing, (json.dumps(said) + "\n").encode())

    code = 1
    try:
        output = os.open(words, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        faulthandler.dump_traceback_later(0.9 * limit, file=2)
        work(tell)
        code = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _listen(pipe: int, seconds: float) -> tuple[bytes, bool]:
    """Return what comes through a pipe until its other end closes, and whether the time was up before."""
    heard, end = b"", monotonic() + seconds
    while select.select([pipe], [], [], max(end - monotonic(), 0))[0]:
        more = os.read(pipe, 65536)
        if not more:
            return heard, False
        heard += more
    return heard, True
