"""A training that is killed and goes on, and how it came out."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import attrs

from scripts.crash_test.differences import between_checkpoints
from scripts.kill_ranks.moments import Hit, hit
from scripts.kill_ranks.training import Training

MOST = 3
"""Kills of one run."""


@attrs.define
class Run:
    """A training in a folder of its own.

    Attributes:
        folder: of the run.
        hits: what it went through.
        written: what each rank that ended it wrote; nothing: it did not end.
    """

    folder: Path
    hits: list[Hit] = attrs.field(factory=list)
    written: dict[int, dict[str, Any]] = attrs.field(factory=dict)

    @property
    def saves(self) -> Path:
        """Return the folder of its checkpoints."""
        return self.folder / "saves"

    def complaints(self, whole: Run) -> list[str]:
        """Return in what it differs from a run that nobody killed."""
        if not self.written:
            return [f"it did not end; see {self.folder}"]
        missing = set(range(max(self.written))) - set(self.written)
        wrong = [f"rank {rank} wrote nothing" for rank in sorted(missing)]
        wrong += [f"rank {rank}: {found}" for rank, found in self.written.items() if found != whole.written[0]]
        return wrong or list(between_checkpoints(self.saves, whole.saves))


def killed(run: Run, chance: random.Random, seconds: float) -> None:
    """Run a training to its end through kills, each time with another number of processes; ``seconds``: it takes."""
    for attempt in range(MOST + 1):
        processes = chance.choice([2, 4] if attempt == 0 else [1, 2, 4])
        training = Training(run.folder / f"start-{attempt}", run.saves, processes)
        try:
            if attempt < MOST and (found := hit(training, chance, seconds)):
                run.hits.append(found)
            if not training.wait():
                return
        finally:
            training.end()
        if training.launchers[0].returncode == 0:
            run.written = training.written()
            assert len(run.written) == processes, f"a rank wrote nothing; see {training.out}"
            return
