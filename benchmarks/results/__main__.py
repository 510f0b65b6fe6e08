"""``make results``: run what is missing, one piece at a time, and write the table anew after each.

    python -m benchmarks.results [ROW ...] [--sides onion hugging-face] [--data FOLDER] [--out FOLDER] [--table FILE]

A piece that was interrupted begins again; one that is finished is not run again. A piece that fails is told, and the
others go on; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.common.processes import ROOT
from benchmarks.results.pieces import Piece, Results, missing_files, pieces_of
from benchmarks.results.processes import FailedError, run
from benchmarks.results.rows import ROWS, SIDES, Row, chosen
from benchmarks.results.table import page
from onion.disk import replace_file
from onion.errors import OnionError

DATA = ROOT.parent / "shared" / "data"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it; return the exit status."""
    options = _parser().parse_args(arguments)
    if not options.data.is_dir():
        print(f"the data sets are not in {options.data}; give their folder: make results DATA=...", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))  # the child is stopped on the way out
    results = Results(options.out, options.data)
    rows = [row for row in chosen(options.rows) if _complete(row, options.data)]
    missing = [piece for piece in pieces_of(rows, options.sides) if results.read(piece) is None]
    _write_table(results, options.table)
    failed = 0
    for number, piece in enumerate(missing, start=1):
        print(f"{number} of {len(missing)}: {piece}", flush=True)
        failed += not _done(piece, results)
        _write_table(results, options.table)
    print(f"{options.table} tells what there is" + (f"; {failed} pieces failed" if failed else ""))
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(prog="results", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", type=_one_of(names), help=f"of {', '.join(names)}")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of all data sets")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "results", help="keeps the results")
    parser.add_argument("--table", type=Path, default=ROOT / "docs" / "results.md")
    return parser


def _one_of(names: Sequence[str]) -> Any:
    """``choices`` would refuse that no row is given at all."""

    def checked(name: str) -> str:
        if name not in names:
            raise argparse.ArgumentTypeError(f"there is no row {name!r}; there are {', '.join(names)}")
        return name

    return checked


def _complete(row: Row, data: Path) -> bool:
    missing = missing_files(row, data)
    if missing:
        print(f"{row.name}: left out, {missing[0]} is not there", file=sys.stderr)
    return not missing


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


def _write_table(results: Results, path: Path) -> None:
    replace_file(path, page(ROWS, results).encode())


if __name__ == "__main__":
    sys.exit(main())
