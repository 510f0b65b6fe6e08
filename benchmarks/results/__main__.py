"""``make results``: run what is missing, one piece at a time, and write the table anew after each.

    python -m benchmarks.results [ROW ...] [--sides onion hugging-face] [--data FOLDER] [--kept FOLDER] [--out FOLDER]
        [--table FILE]

A piece that was interrupted begins again; one that is finished is not run again. A piece that fails is told, and the
others go on; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.common.driver import DATA, complete, no_data, run_all
from benchmarks.common.processes import ROOT
from benchmarks.results.pieces import Piece, Results, missing_files, pieces_of
from benchmarks.results.processes import FailedError, run
from benchmarks.results.rows import ROWS, SIDES, chosen
from benchmarks.results.table import page
from onion.checkpointing.atomic_files import replace_file
from onion.errors import OnionError


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it; return the exit status."""
    options = _parser().parse_args(arguments)
    if no_data(options.data, "results"):
        return 2
    results = Results(options.kept, options.data, options.out)
    rows = [row for row in chosen(options.rows) if complete(row.name, missing_files(row, options.data))]
    missing = [piece for piece in pieces_of(rows, options.sides) if results.read(piece) is None]

    def write() -> None:
        replace_file(options.table, page(ROWS, results).encode())

    return run_all(missing, lambda piece: _done(piece, results), write, options.table)


def _parser() -> argparse.ArgumentParser:
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(prog="results", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", type=_one_of(names), help=f"of {', '.join(names)}")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of all data sets")
    parser.add_argument("--kept", type=Path, default=Path(__file__).parent / "kept", help="of what each training gave")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "results", help="for encoders and logs")
    parser.add_argument("--table", type=Path, default=ROOT / "docs" / "results.md")
    return parser


def _one_of(names: Sequence[str]) -> Any:
    """``choices`` would refuse that no row is given at all."""

    def checked(name: str) -> str:
        if name not in names:
            raise argparse.ArgumentTypeError(f"there is no row {name!r}; there are {', '.join(names)}")
        return name

    return checked


def _done(piece: Piece, results: Results) -> bool:
    begun = perf_counter()
    try:
        result = run(piece, results)
    except (FailedError, OnionError, subprocess.CalledProcessError) as error:  # the last: pip could not install
        print(f"failed: {error}", file=sys.stderr, flush=True)
        return False
    told = [
        f"{name} {100 * value:.1f}" + (f" ({dev})" if len(result["figures"]) > 1 else "")
        for dev, figures in result["figures"].items()
        for name, value in figures.items()
    ]
    seconds = f"{result['seconds']:.0f} s of training, {perf_counter() - begun:.0f} s in all"
    print(f"    {', '.join(told)}; {result['steps']} steps, {seconds}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
