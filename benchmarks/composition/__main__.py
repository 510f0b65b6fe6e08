"""``make composition``: run what is missing, one piece at a time, and write the page anew after each.

    python -m benchmarks.composition [NAME ...] [--data FOLDER] [--out FOLDER] [--table FILE]

A piece that was interrupted begins again; one that is finished is not run again as long as its command line and its
data files are the same. (After a change of an example that changes its figures, delete its results.) A piece that
fails is told, and the others go on; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from benchmarks.common.driver import DATA, complete, no_data, run_all
from benchmarks.common.processes import ROOT, FailedError
from benchmarks.composition.compared import EXAMPLES, chosen
from benchmarks.composition.page import page
from benchmarks.composition.pieces import Piece, Results, missing_files, pieces_of
from benchmarks.composition.processes import run
from onion.checkpointing.atomic_files import replace_file


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it; return the exit status."""
    options = _options(arguments)
    if no_data(options.data, "composition"):
        return 2
    results = Results(options.out, options.data)
    examples = [
        example for example in chosen(options.names) if complete(example.name, missing_files(example, options.data))
    ]
    missing = results.missing(list(pieces_of(examples)))

    def write() -> None:
        replace_file(options.table, page(EXAMPLES, results).encode())

    return run_all(missing, lambda piece: _done(piece, results), write, options.table)


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


if __name__ == "__main__":
    sys.exit(main())
