"""A page of docs/ made of runs that take hours: each is kept as a file, and not run again as long as it counts.

A result counts as long as all that decides about it is what it was; whatever changes makes another name. Runs are made
one after the other; the page is written before the first and after each.
"""

from __future__ import annotations

import hashlib
import json
import re
import signal
import sys
from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace, RawTextHelpFormatter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar, Generic, TypeVar

from benchmarks.frame import DATA, ROOT
from benchmarks.frame.processes import FailedError
from benchmarks.frame.section import lacks_data
from benchmarks.frame.tables import machine, today
from benchmarks.frame.worker import version_of
from onion.checkpointing.atomic_files import replace_file

Result = dict[str, Any]
Run = TypeVar("Run")
DIGEST_LENGTH = 12


@cache
def sum_of(path: Path) -> str:
    """Return the SHA-256 of a file; it is read once."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_whole(folder: Path, log: Path) -> bool:
    """Return whether a folder is there and nothing was interrupted in it: the log of a run goes when it is done."""
    return folder.is_dir() and not log.exists()


def figures_in(page: str) -> int:
    """Return how many cells of the tables of a page begin with a number."""
    return len(re.findall(r"\| [+-]?\d", page))


class Study(ABC, Generic[Run]):
    """What is run, what a result depends on, and the page.

    ``name`` is that of the module and the make target, ``names`` what the command line may choose (one is a ``noun``),
    ``libraries`` those whose versions are kept with a result, ``table`` the page below docs/.
    """

    name: ClassVar[str]
    text: ClassVar[str | None]
    noun: ClassVar[str] = ""
    names: ClassVar[Sequence[str]] = ()
    uses_data: ClassVar[bool] = True
    libraries: ClassVar[Sequence[str]] = ()
    table: ClassVar[str]

    def __init__(self, given: Namespace) -> None:
        self.given = given
        self.folder: Path = given.out.absolute()
        self.data: Path = getattr(given, "data", DATA).absolute()
        self._reported: set[Path] = set()

    @abstractmethod
    def runs(self) -> Iterable[Run]:
        """Return what belongs to the page, by the options, in the order in which it is run."""

    @abstractmethod
    def stem(self, run: Run) -> str:
        """Return the first part of the name of a result's file."""

    @abstractmethod
    def record(self, run: Run) -> Any:
        """Return all that decides about a result, as JSON values."""

    @abstractmethod
    def execute(self, run: Run) -> Result:
        """Run it; FailedError if it did not succeed."""

    @abstractmethod
    def page(self) -> str:
        """Return the whole page, of what there is."""

    def files(self, run: Run) -> Iterable[Path]:
        """Return the files without which it cannot be run."""
        return ()

    def summary(self, result: Result) -> str:
        return ""

    def needs(self, run: Run) -> Sequence[Run]:
        """Return the runs whose folders it reads; they are made before it."""
        return ()

    def is_there(self, run: Run) -> bool:
        """Return whether the folder that a run leaves for others is there, and whole."""
        return True

    def missing(self, runs: Sequence[Run]) -> list[Run]:
        """Return runs without a result, and those whose folder one of these needs and is gone, or not whole."""
        open_ = [run for run in runs if self.read(run) is None]
        for run in reversed(runs):  # a run stands behind those that it needs
            if run in open_:
                open_ += [need for need in self.needs(run) if need not in open_ and not self.is_there(need)]
        return [run for run in runs if run in open_]

    def write_page(self, table: Path) -> bool:
        """Write the page, unless it has more figures there: the results that they are of may be elsewhere.

        Returns:
            Whether it was written.
        """
        page = self.page()
        if table.is_file() and figures_in(page) < figures_in(table.read_text(encoding="utf-8")):
            told = "is left as it is: it has more figures than there are results here; delete it to write it anew"
            print(f"{table} {told}", file=sys.stderr)
            return False
        replace_file(table, page.encode())
        return True

    @classmethod
    def add_options(cls, parser: ArgumentParser) -> None:
        """Add further options."""

    def path(self, run: Run) -> Path:
        digest = hashlib.sha256(json.dumps(self.record(run), sort_keys=True).encode()).hexdigest()[:DIGEST_LENGTH]
        return self.folder / f"{self.stem(run)}.{digest}.json"

    def read(self, run: Run) -> Result | None:
        """Return the result of a run; None: it has not come to its end, with these settings and files."""
        if not all(path.is_file() for path in self.files(run)):
            return None
        try:
            found = json.loads(self.path(run).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def keep(self, run: Run, result: Result) -> None:
        """Keep a result; its file appears whole or not at all."""
        path = self.path(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, (json.dumps(result, indent=1) + "\n").encode())

    def executed(self, run: Run) -> Result:
        """Run it; keep and return the result, with the machine, the date and versions."""
        result = {"versions": {name: version_of(name) for name in self.libraries}, **self.execute(run)}
        result |= {"machine": machine(), "date": today()}
        self.keep(run, result)
        return result

    @classmethod
    def main(cls, arguments: Sequence[str] | None = None) -> int:
        """Run what is missing; return the exit status, 1 where a run has failed, 2 without data sets."""
        given = cls._options(arguments)
        if cls.uses_data and lacks_data(given.data, cls.name):
            return 2
        study = cls(given)
        there = [run for run in study.runs() if study._is_complete(run)]
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, lambda number, frame: sys.exit(128 + number))  # the child is stopped on the way out
        written = study.write_page(given.table)
        missing = study.missing(there)
        failed = 0
        for number, run in enumerate(missing, start=1):
            print(f"{number} of {len(missing)}: {run}", flush=True)
            begun = perf_counter()
            try:
                print(f"    {study.summary(study.executed(run))}; {perf_counter() - begun:.0f} s", flush=True)
            except FailedError as error:
                print(f"failed: {error}", file=sys.stderr, flush=True)
                failed += 1
            written = study.write_page(given.table)
        told = [f"{given.table} has what there is"] * written + [f"{failed} runs failed"] * bool(failed)
        print("; ".join(told))
        return 1 if failed else 0

    @classmethod
    def _options(cls, arguments: Sequence[str] | None) -> Namespace:
        parser = ArgumentParser(prog=cls.name, description=cls.text, formatter_class=RawTextHelpFormatter)
        names = ", ".join(cls.names)
        if cls.names:
            parser.add_argument("names", nargs="*", metavar=cls.noun.upper(), help=f"of {names}")
        if cls.uses_data:
            parser.add_argument("--data", type=Path, default=DATA, help="the folder of all data sets")
        parser.add_argument("--out", type=Path, default=ROOT / "out" / cls.name, help="keeps the results")
        parser.add_argument("--table", type=Path, default=ROOT / "docs" / cls.table)
        cls.add_options(parser)
        given = parser.parse_args(arguments)
        for name in getattr(given, "names", ()):  # ``choices`` would refuse that none is given at all
            if name not in cls.names:
                parser.error(f"there is no {cls.noun} {name!r}; there are {names}")
        return given

    def chosen(self, name: str) -> bool:
        """Return whether the command line chooses something, or names nothing."""
        return name in (self.given.names or [name])

    def _is_complete(self, run: Run) -> bool:
        gone = [path for path in self.files(run) if not path.is_file()]
        if gone and gone[0] not in self._reported:
            self._reported.add(gone[0])
            print(f"{run}: left out, {gone[0]} is not there", file=sys.stderr)
        return not gone
