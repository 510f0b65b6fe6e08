"""A run killed, started again, and held against the one that nobody killed."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from killing.child import End
from killing.differences import differences, torn
from killing.points import Census, Point, draw, kinds_in
from killing.run import Kind, run, words_of

DRAWS = 20
"""How many points may lie behind the end of a run before an attempt is given up. The second of two often does, as the
run that went on is shorter."""


@dataclass(frozen=True)
class Plan:
    """An attempt that is due.

    Attributes:
        onion: its name.
        kind: of the first kill.
        twice: whether the run that went on is killed too, in any way.
        seed: of the points.
    """

    onion: str
    kind: str
    twice: bool
    seed: str


@dataclass(frozen=True)
class GradientRollback:
    """What came of one.

    Attributes:
        onion: its name.
        points: where it was killed; none: it was run a second time, to see that it is the same every time.
        complaints: what was wrong.
    """

    onion: str
    points: tuple[Point, ...]
    complaints: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Whether anything was wrong."""
        return bool(self.complaints)


class Place:
    """Where the runs of an onion are, and how they go.

    Args:
        name: of the onion.
        onion: the onion.
        folder: for its runs.
        limit: seconds after which a run hangs.
    """

    def __init__(self, name: str, onion: Kind, folder: Path, limit: float) -> None:
        self.name, self._onion, self._folder, self._limit = name, onion, folder / name, limit
        self._whole = self._folder / "whole"

    def whole(self) -> tuple[Census | None, GradientRollback]:
        """Run the onion without a kill, twice; return what is counted of it (None: it failed) and what differs."""
        self._folder.mkdir(parents=True, exist_ok=True)
        end = self._run(self._whole, None)
        complaints = tuple(_unless_done(end, self._whole)) or self._restart([], self._folder / "again")
        census = end.said("census")
        return (census[0] if census and not complaints else None), GradientRollback(self.name, (), tuple(complaints))

    def follow(self, plan: Plan, census: Census) -> GradientRollback:
        """Draw points until they are reached, and die there."""
        chance = random.Random(plan.seed)  # noqa: S311
        for _ in range(DRAWS):
            points = [draw(census, plan.kind, chance)]
            if plan.twice:
                points.append(draw(census, chance.choice(kinds_in(census)), chance))
            attempt = self.kill(points, plan.seed)
            if attempt is not None:
                return attempt
        return GradientRollback(self.name, tuple(points), (f"not reached, and no other point in {DRAWS} draws",))

    def kill(self, points: Sequence[Point], name: str) -> GradientRollback | None:
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
                    return GradientRollback(self.name, tuple(points), tuple(complaints))
                ends.append(end)
            return GradientRollback(self.name, tuple(points), self._restart(ends, folder))
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


def _last_words(folder: Path, lines: int = 12) -> str:
    """Return what the last run printed in the end."""
    words = words_of(folder).read_text(errors="replace").splitlines()
    return "".join(f"\n      {line}" for line in words[-lines:])
