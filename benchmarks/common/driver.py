"""Run pieces of work one after the other, for hours: told as they go, stopped politely, the page written after each."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from benchmarks.common.processes import ROOT

Piece = TypeVar("Piece")

DATA = ROOT.parent / "shared" / "data"


def no_data(folder: Path, target: str) -> bool:
    """Tell, and say, that the folder of data sets is not there."""
    if folder.is_dir():
        return False
    print(f"the data sets are not in {folder}; give their folder: make {target} DATA=...", file=sys.stderr)
    return True


def complete(name: str, missing: Sequence[Path]) -> bool:
    """Tell whether something has all its files; say which it lacks."""
    if missing:
        print(f"{name}: left out, {missing[0]} is not there", file=sys.stderr)
    return not missing


def run_all(pieces: Sequence[Piece], done: Callable[[Piece], bool], write: Callable[[], None], page: Path) -> int:
    """Run what is missing; return the exit status, 1 where a piece has failed.

    Args:
        pieces: in their order.
        done: runs one, tells what came of it, and whether it came to its end.
        write: writes the page, before the first piece and after each.
        page: where that is.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))  # the child is stopped on the way out
    write()
    failed = 0
    for number, piece in enumerate(pieces, start=1):
        print(f"{number} of {len(pieces)}: {piece}", flush=True)
        failed += not done(piece)
        write()
    print(f"{page} tells what there is" + (f"; {failed} pieces failed" if failed else ""))
    return 1 if failed else 0
