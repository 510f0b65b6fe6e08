"""What the comparisons share: rows of the table, real texts, and running a reference in its environment."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.console import columns
from scripts.parity.environments import python_of

TOLERANCE = 1e-5
HEAD = ("what", "against", "layouts", "outputs", "gradients", "verdict")


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        what: was computed.
        against: name and version of who computed it too.
        layouts: that were read, or whatever else says how.
        outputs: the largest difference; infinite where shapes or ids differ.
        gradients: the same over all parameters, each relative to its largest element where that exceeds 1; None where
            there are none to compare.
        unit: what is counted, where the outputs are not numbers but differ or not: ``"lines"``.
    """

    what: str
    against: str
    layouts: str
    outputs: float
    gradients: float | None = None
    unit: str = ""

    @property
    def agrees(self) -> bool:
        """Whether every difference is there, is a number, and is small enough."""
        limit = 0.0 if self.unit else TOLERANCE
        found = [self.outputs] if self.gradients is None else [self.outputs, self.gradients]
        return all(value <= limit for value in found)  # not so of nan

    @property
    def cells(self) -> tuple[str, ...]:
        outputs = f"{self.outputs:g} {self.unit}" if self.unit else f"{self.outputs:.1e}"
        gradients = "-" if self.gradients is None else f"{self.gradients:.1e}"
        return self.what, self.against, self.layouts, outputs, gradients, "equal" if self.agrees else "DIFFERS"


def worst(differences: Iterable[float]) -> float:
    """The largest; nan is larger than all else, and nothing to compare is infinitely wrong."""
    found = list(differences)
    if not found:
        return math.inf
    return math.nan if any(map(math.isnan, found)) else max(found)


def rendered(rows: Sequence[Row]) -> str:
    """The rows as columns of plain text."""
    return columns([HEAD, *(row.cells for row in rows)])


def all_agree(rows: Sequence[Row]) -> bool:
    """Whether there are rows, and every one of them agrees."""
    return bool(rows) and all(row.agrees for row in rows)


ROOT = Path(__file__).parent.parent.parent
DATA = ROOT.parent / "shared" / "data"


def own_lines() -> list[str]:
    """The lines of the license that are not empty, and a few that are odd."""
    lines = (ROOT / "LICENSE").read_text(encoding="utf-8").split("\n")
    odd = ["", "no", "Ünïcödé, 中文 and e-mail@example.com: 12,345.67!", "[MASK] \t x\u0301\u200b", "don't " * 20]
    return [line.strip() for line in lines if line] + odd


def lines_of_data(language: str, count: int) -> list[str]:
    """So many lines of the texts in a language (``"en"``, ``"zh"``) that are not empty; none without the data."""
    path = DATA / f"text_{language}" / f"wiki_{language}.train.txt"
    if not path.is_file():
        return []
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line][:count]


# Nothing is fetched: every file that a reference reads is named to it.
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def run_reference(reference: str, *words: str | Path) -> None:
    """Run a job of scripts/reference_outputs; what it prints is shown only if it fails.

    Raises:
        SystemExit: it failed.
    """
    command = [str(python_of(reference)), "-m", "scripts.reference_outputs", *map(str, words)]
    print(f"{reference}: {words[0]}", file=sys.stderr, flush=True)
    done = subprocess.run(command, cwd=ROOT, env=os.environ | OFFLINE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.stderr.buffer.write(done.stdout)
        sys.exit(f"{reference}: {words[0]} failed with status {done.returncode}")
