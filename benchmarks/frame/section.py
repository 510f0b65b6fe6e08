"""A section of benchmarks/results.md: figures over rounds with their goals, kept as JSON under benchmarks/measured."""

from __future__ import annotations

import json
import os
import statistics
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.frame import DATA, ROOT
from benchmarks.frame.processes import Side
from benchmarks.frame.tables import machine, quartiles, table, today
from onion.checkpointing.atomic_files import replace_file
from onion.host.math_library import AVX2, VARIABLE

MEASURED = ROOT / "benchmarks" / "measured"
COLUMNS = ("", "median", "quartiles", "goal")

LIMITS = {VARIABLE: AVX2, "ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
"""A processor with AVX2 and no AVX-512, as most users have one, on a machine that has both: the switches of MKL in
Paddle (peers on Paddle choose for themselves), of oneDNN in Paddle and torch, of torch's own kernels. torch's MKL takes
its kernels for AVX2 on AMD processors anyway; ONNX Runtime has no switch (inference/onnx_copy.py). Paddle's own
elementwise kernels for AVX-512 cannot be switched off."""

LIMITED = """\
The machine has AVX-512; here no side uses it for products, so that the figures are those of a processor with AVX2:
MKL_DEBUG_CPU_TYPE=5 for onion, ONEDNN_MAX_CPU_ISA=AVX2 and ATEN_CPU_CAPABILITY=avx2 for all. ONNX Runtime has no such
switch: it runs from a copy in which the processor's state has no registers of AVX-512 wherever it asks for that."""


@dataclass(frozen=True)
class Figure:
    """One line of a table: a value for each round, and an upper or lower goal for their median."""

    what: str
    unit: str
    values: Sequence[float]
    at_most: float | None = None
    at_least: float | None = None
    digits: int = 2

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the median meets the goal; None without a goal."""
        if self.at_most is not None:
            return self.median <= self.at_most
        return None if self.at_least is None else self.median >= self.at_least

    def cells(self) -> tuple[str, str, str, str]:
        between = " to ".join(map(self._text, quartiles(self.values))) if len(self.values) > 1 else ""
        return self.what, f"{self._text(self.median)} {self.unit}".strip(), between, self._goal()

    def _goal(self) -> str:
        if self.met is None:
            return ""
        word, limit = ("at most", self.at_most) if self.at_most is not None else ("at least", self.at_least)
        return f"{word} {limit:g}: {'met' if self.met else '**missed**'}"

    def _text(self, value: float) -> str:
        return f"{value:,.{self.digits}f}"


@dataclass
class Section:
    """The results of a benchmark, with a paragraph on how they were measured."""

    name: str
    title: str
    how: str
    rounds: int
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = field(default_factory=machine)
    date: str = field(default_factory=today)

    def add_versions(self, sides: Iterable[Side]) -> None:
        for side in sides:
            self.versions |= side.last.get("versions", {})

    def add_memory(self, sides: Iterable[Side], before: str = "") -> None:
        """Add the peak memory of the process of each side, which has ended, its libraries included."""
        for side in sides:
            what, mib = f"{before}peak memory: {side.name}", side.last["peak_bytes"] / 2**20
            self.figures.append(Figure(what, "MiB", [mib], digits=0))

    def markdown(self) -> str:
        versions = ", ".join(f"{name} {version}" for name, version in sorted(self.versions.items()))
        where = f"{self.rounds} rounds on {self.machine}, {self.date}" + (f", with {versions}." if versions else ".")
        lines = table(COLUMNS, (figure.cells() for figure in self.figures))
        notes = "\n".join(f"- {note}" for note in self.notes)
        return "\n\n".join(part for part in (f"## {self.title}", self.how, lines, notes, where) if part) + "\n"

    def keep(self, folder: Path = MEASURED) -> None:
        """Write it as JSON, a figure a line, to the folder that ``make bench`` makes its page of."""
        folder.mkdir(parents=True, exist_ok=True)
        content = asdict(self)
        figures = ",\n".join(f"  {json.dumps(each, ensure_ascii=False)}" for each in content.pop("figures"))
        head = json.dumps(content, ensure_ascii=False, indent=1).removesuffix("\n}")
        replace_file(folder / f"{self.name}.json", f'{head},\n "figures": [\n{figures}\n ]\n}}\n'.encode())


def read(path: Path) -> Section:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return Section(**{**found, "figures": [Figure(**figure) for figure in found["figures"]]})


class Benchmark:
    """The command line of a section: ``--rounds``, ``--keep`` and the options that the section needs.

    Args:
        name: of its module and its file.
        title: of the section.
        how: it is measured, in a paragraph.
        text: of its help.
        measure: adds figures to a section, according to the options.
        rounds: by default.
        parts: of which ``--only`` chooses some.
        peers: whether it has ``--peers``.
        data: whether it needs data sets, which ``--data`` names.
        avx2: whether it has ``--avx2``, which makes a section of its own.
    """

    def __init__(
        self,
        name: str,
        title: str,
        how: str,
        text: str | None,
        measure: Callable[[Section, Namespace], None],
        rounds: int,
        parts: Iterable[str] = (),
        peers: bool = False,
        data: bool = False,
        avx2: bool = False,
    ) -> None:
        self.name, self.title, self.how, self.measure = name, title, how, measure
        self.parser = ArgumentParser(prog=name, description=text, formatter_class=RawDescriptionHelpFormatter)
        add = self.parser.add_argument
        add("--rounds", type=int, default=rounds)
        add("--keep", action="store_true", help="write the section for benchmarks/results.md")
        if names := list(parts):
            add("--only", nargs="*", choices=names, default=names, metavar="PART", help=f"of {', '.join(names)}")
        if peers:
            add("--peers", nargs="*", metavar="NAME", help="by their names; none: onion alone")
        if data:
            add("--data", type=Path, default=DATA, help="the folder of data sets")
        if avx2:
            add("--avx2", action="store_true", help="as on a processor without AVX-512")

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Measure, print the section and keep it if wanted; return the exit status."""
        given = self.parser.parse_args(arguments)
        if "data" in given and lacks_data(given.data, "bench"):
            return 2
        section = Section(self.name, self.title, self.how, given.rounds)
        if getattr(given, "avx2", False):
            os.environ.update(LIMITS)  # for all sides that are started from now on
            section.name, section.title = f"{self.name}-avx2", f"{self.title}, without AVX-512"
            section.how += f"\n\n{LIMITED}"
        self.measure(section, given)
        print(section.markdown())
        if given.keep:
            section.keep()
        return 0


def lacks_data(folder: Path, target: str) -> bool:
    """Return whether the folder of data sets is missing, which is reported then."""
    if folder.is_dir():
        return False
    print(f"the data sets are not in {folder}; give their folder: make {target} DATA=...", file=sys.stderr)
    return True
