"""Where a run is killed: an event and its number, what counts the events, and the rings and files that report them.

event                       number
step|pass outer|inner in|out    the batch or pass, its way in or out, seen from the outermost or the innermost ring
test batch|pass in|out          the same of the nested tests, seen from their innermost ring
byte FILE                       the byte that is not written any more, over all files of that name in all checkpoints;
                                ``byte temporary`` is of what takes a file's place as a whole
log FILE                        the same of a log
sync before|after               the file or folder that is brought to the disk
rename before|after             the file or folder that is renamed
rename unsynced                 the same, just before the next sync
remove before|half|after        the folder that is removed; half: half of its files are gone
clock                           seconds since the process began; the kill comes from outside

Numbers begin with 1. Two runs of an onion come by the same points; only ``clock`` is another moment every time, and
those of an onion that saves in a thread of its own may change places with those of its log.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from onion import HookIterator, Runner, RunnerItem, State, Tester
from onion.checkpointing.atomic_files import Files
from onion.checkpointing.checkpoint import steps_in

KINDS = ("step", "pass", "test", "byte", "sync", "rename", "remove", "log", "clock")
"""The first words of the events."""

Tell: TypeAlias = Callable[[dict[str, Any]], None]
"""Says something to the parent at once."""

Census: TypeAlias = Mapping[str, float]
"""How often each event comes in an uninterrupted run; of ``clock``, how many seconds it takes."""


@dataclass(frozen=True)
class Point:
    """The number-th event of its name."""

    event: str
    number: float

    @classmethod
    def parse(cls, text: str) -> Point:
        """Read what ``str`` wrote.

        Raises:
            ValueError: it names no kind of event, or has no number.
        """
        event, _, number = text.rpartition(" ")
        if kind_of(event) not in KINDS or not number.replace(".", "", 1).isdecimal():
            raise ValueError(f"{text!r} is no point; write an event and its number, such as 'rename unsynced 3'")
        return cls(event, float(number))

    def __str__(self) -> str:
        return f"{self.event} {self.number:g}" if self.by_clock else f"{self.event} {self.number:.0f}"

    @property
    def kind(self) -> str:
        return kind_of(self.event)

    @property
    def by_clock(self) -> bool:
        """Whether the kill comes from outside, at a time."""
        return self.kind == "clock"


def kind_of(event: str) -> str:
    """Return the first word of an event."""
    return event.partition(" ")[0]


def kinds_in(census: Census) -> list[str]:
    there = {kind_of(event) for event in census}
    return [kind for kind in KINDS if kind in there]


def draw(census: Census, kind: str, chance: random.Random, share: float = 1.0) -> Point:
    """Draw one of the events of a kind, each as likely as the others, then a number among that share of its first."""
    event = chance.choice(sorted(event for event in census if kind_of(event) == kind))
    last = share * census[event]
    return Point(event, round(chance.uniform(0, last), 4) if kind == "clock" else chance.randint(1, max(int(last), 1)))


class Reaper:
    """Counts the events that rings and files report, and kills the process at a point (None: nowhere)."""

    def __init__(self, point: Point | None, tell: Tell) -> None:
        self.point, self.tell = point, tell
        self.seen: Counter[str] = Counter()

    def at(self, event: str, first: Callable[[], object] = lambda: None) -> None:
        """Count an event, and die if it is the one; do something first."""
        if self.among(event, 1) is not None:
            first()
            die()

    def among(self, event: str, many: int) -> int | None:
        """Count that many events; return how many come before the one to die at, None if it is not among them."""
        before = self.seen[event]
        self.seen[event] += many
        if self.point is None or self.point.event != event or not before < self.point.number <= before + many:
            return None
        return int(self.point.number) - 1 - before


def die() -> None:
    """Leave as by the power switch: nothing is flushed, no ``finally`` runs."""
    os.kill(os.getpid(), signal.SIGKILL)


class Witness(RunnerItem):
    """Report each way in and out of a pass and a batch, under these names."""

    passive = True

    def __init__(self, reaper: Reaper, on_pass: str, on_batch: str) -> None:
        self._reaper, self._pass, self._batch = reaper, on_pass, on_batch

    def on_pass(self, state: State) -> HookIterator:
        yield from self._around(self._pass)

    def on_batch(self, state: State) -> HookIterator:
        yield from self._around(self._batch)

    def _around(self, event: str) -> HookIterator:
        self._reaper.at(f"{event} in")
        yield
        self._reaper.at(f"{event} out")


class Begun(RunnerItem):
    """Report where the run begins; the rings outside have restored their state."""

    passive = True

    def __init__(self, reaper: Reaper) -> None:
        self._reaper = reaper

    def initialize(self, state: State) -> None:
        self._reaper.tell({"begun": state.step})


def witnessed(runner: Runner, reaper: Reaper) -> Runner:
    """Return the runner with a witness outside all rings and one inside; its testers' onions get one inside."""
    for tester in runner.all(Tester):
        tester.runner = _with(tester.runner, Witness(reaper, "test pass", "test batch"))
    return _with(runner, Witness(reaper, "pass inner", "step inner"), Begun(reaper)).insert_before(
        runner.items[0], Witness(reaper, "pass outer", "step outer")
    )


def _with(runner: Runner, *innermost: RunnerItem) -> Runner:
    return runner.insert_after(runner.items[-1], *innermost)


class FatalFiles(Files):
    """The system's files; operations are reported to the reaper, checkpoints with a final name to the parent."""

    def __init__(self, reaper: Reaper, folder: Path) -> None:
        self._reaper, self._folder = reaper, folder
        self._unsynced = False

    def write(self, file: IO[bytes], content: bytes) -> None:
        """Report each byte; the disk gets those before the last one."""
        name = "temporary" if isinstance(file.name, int) else Path(file.name).name  # replace_file opens by number
        rest = self._reaper.among(f"{'log' if name.endswith('.jsonl') else 'byte'} {name}", len(content))
        super().write(file, content[:rest])
        if rest is not None:
            file.flush()
            die()

    def sync(self, handle: int) -> None:
        """Report before and after; and if something was renamed since the last time."""
        if self._unsynced:
            self._unsynced = False
            self._reaper.at("rename unsynced")
        self._reaper.at("sync before")
        super().sync(handle)
        self._reaper.at("sync after")

    def rename(self, source: Path, target: Path) -> None:
        """Report before and after; and the parent of checkpoints that are there now."""
        self._reaper.at("rename before")
        super().rename(source, target)
        self._unsynced = True
        self._reaper.tell({"saved": max(steps_in(self._folder), default=0)})
        self._reaper.at("rename after")

    def remove(self, folder: Path) -> None:
        """Report before, after, and when half of the files are gone."""
        self._reaper.at("remove before")
        self._reaper.at("remove half", first=lambda: halve(folder))
        super().remove(folder)
        self._reaper.at("remove after")


def halve(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files[: (len(files) + 1) // 2]:
        path.unlink()
