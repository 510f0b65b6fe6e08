"""``make composition``: run what is missing, one piece at a time, and write the page anew after each.

    python -m benchmarks.composition [NAME ...] [--data FOLDER] [--out FOLDER] [--table FILE]

A piece that was interrupted begins again; one that is finished is not run again as long as its command line and its
data files are the same. (After a change of an example that changes its figures, delete its results.) A piece that
fails is told, and the others go on; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from benchmarks.common.processes import ROOT, FailedError
from benchmarks.composition.compared import EXAMPLES, Example, chosen
from benchmarks.composition.page import page
from benchmarks.composition.pieces import Piece, Results, missing_files, pieces_of
from benchmarks.composition.processes import run
from onion.disk import replace_file

DATA = ROOT.parent / "shared" / "data"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it; return the exit status."""
    options = _options(arguments)
    if not options.data.is_dir():
        print(f"the data sets are not in {options.data}; give their folder: make composition DATA=...", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))  # the child is stopped on the way out
    results = Results(options.out, options.data)
    examples = [example for example in chosen(options.names) if _complete(example, options.data)]
    missing = results.missing(list(pieces_of(examples)))
    _write(results, options.table)
    failed = 0
    for number, piece in enumerate(missing, start=1):
        print(f"{number} of {len(missing)}: {piece}", flush=True)
        failed += not _done(piece, results)
        _write(results, options.table)
    print(f"{options.table} tells what there is" + (f"; {failed} pieces failed" if failed else ""))
    return 1 if failed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    names = [example.name for example in EXAMPLES]
    parser = argparse.ArgumentParser(
        prog="composition", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of all data sets")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "composition", help="keeps the results")
    parser.add_argument("--table", type=Path, default=ROOT / "docs" / "composition.md")
    options = parser.parse_args(arguments)
    for name in options.names:  # ``choices`` would refuse that none is given at all
        if name not in names:
            parser.error(f"there is no example {name!r}; there are {', '.join(names)}")
    return options


def _complete(example: Example, data: Path) -> bool:
    missing = missing_files(example, data)
    if missing:
        print(f"{example.name}: left out, {missing[0]} is not there", file=sys.stderr)
    return not missing


def _done(piece: Piece, results: Results) -> bool:
    begun = perf_counter()
    try:
        report = run(piece, results)["report"]
    except FailedError as error:
        print(f"failed: {error}", file=sys.stderr, flush=True)
        return False
    told = [f"{figure.title} {figure.times * report[figure.name]:.1f}" for figure in piece.example.figures]
    print(f"    {', '.join(told)}; {perf_counter() - begun:.0f} s", flush=True)
    return True


def _write(results: Results, path: Path) -> None:
    replace_file(path, page(EXAMPLES, results).encode())


if __name__ == "__main__":
    sys.exit(main())
