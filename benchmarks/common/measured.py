"""What a benchmark found: figures with their goals, kept as JSON under ``benchmarks/measured``, told as tables."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.common.machine import described, today
from benchmarks.common.processes import ROOT
from benchmarks.common.tables import table
from onion.checkpointing.atomic_files import replace_file

MEASURED = ROOT / "benchmarks" / "measured"
COLUMNS = ("", "median", "quartiles", "goal")


@dataclass(frozen=True)
class Figure:
    """One line of a table.

    Attributes:
        what: is told.
        unit: of the values, such as ``µs a batch``.
        values: one for each round.
        at_most: the goal, if it is an upper one.
        at_least: the goal, if it is a lower one.
        digits: behind the point.
    """

    what: str
    unit: str
    values: Sequence[float]
    at_most: float | None = None
    at_least: float | None = None
    digits: int = 2

    @property
    def median(self) -> float:
        """Of the rounds."""
        return statistics.median(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the median is what the goal says; None without a goal."""
        if self.at_most is not None:
            return self.median <= self.at_most
        return None if self.at_least is None else self.median >= self.at_least

    def cells(self) -> tuple[str, str, str, str]:
        """Return the line, under ``COLUMNS``."""
        quartiles = ""
        if len(self.values) > 1:
            low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
            quartiles = f"{self._told(low)} to {self._told(high)}"
        return self.what, f"{self._told(self.median)} {self.unit}".strip(), quartiles, self._goal()

    def _goal(self) -> str:
        if self.met is None:
            return ""
        word, limit = ("at most", self.at_most) if self.at_most is not None else ("at least", self.at_least)
        return f"{word} {limit:g}: {'met' if self.met else '**missed**'}"

    def _told(self, value: float) -> str:
        return f"{value:,.{self.digits}f}"


@dataclass
class Measured:
    """What a benchmark found.

    Attributes:
        name: of the benchmark, as ``python -m benchmarks.NAME`` runs it.
        title: of its section.
        how: what was done, in a paragraph.
        rounds: that were run.
        figures: in the order of the table.
        notes: below the table.
        versions: of the libraries that took part.
    """

    name: str
    title: str
    how: str
    rounds: int
    figures: list[Figure]
    notes: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = field(default_factory=described)
    date: str = field(default_factory=today)

    def section(self) -> str:
        """Return it as Markdown."""
        versions = ", ".join(f"{name} {version}" for name, version in sorted(self.versions.items()))
        where = f"{self.rounds} rounds on {self.machine}, {self.date}" + (f", with {versions}." if versions else ".")
        lines = table(COLUMNS, (figure.cells() for figure in self.figures))
        notes = "\n".join(f"- {note}" for note in self.notes)
        return "\n\n".join(part for part in (f"## {self.title}", self.how, lines, notes, where) if part) + "\n"

    def tell(self, keep: bool) -> None:
        """Print it, and keep it where that is wanted."""
        print(self.section())
        if keep:
            self.keep()

    def keep(self, folder: Path = MEASURED) -> None:
        """Write it to the folder that ``make bench`` makes its page of; what was found before goes."""
        folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n"
        replace_file(folder / f"{self.name}.json", content.encode())


def read(path: Path) -> Measured:
    """Return what was kept."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return Measured(**{**found, "figures": [Figure(**figure) for figure in found["figures"]]})


def of_memory(lasts: Mapping[str, Mapping[str, Any]], before: str = "") -> list[Figure]:
    """Return the most memory that each side's process has held, its libraries included.

    Args:
        lasts: side -> what it told at its end.
        before: stands before the name of each line.
    """
    return [
        Figure(f"{before}peak memory: {side}", "MiB", [last["peak_bytes"] / 2**20], digits=0)
        for side, last in lasts.items()
    ]


def versions_of(lasts: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return the versions that sides told at their ends."""
    return {name: version for last in lasts for name, version in last.get("versions", {}).items()}
