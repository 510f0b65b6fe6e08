"""The command line that benchmarks have in common."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable
from pathlib import Path

from benchmarks.common.driver import DATA


def parser_of(name: str, text: str | None, rounds: int) -> ArgumentParser:
    """Return the parser of a benchmark, with ``--rounds`` and ``--keep``.

    Args:
        name: of its module.
        text: what its help tells.
        rounds: how many it takes if nobody says so.
    """
    parser = ArgumentParser(prog=name, description=text, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--keep", action="store_true", help="write the section for benchmarks/results.md")
    return parser


def add_parts(parser: ArgumentParser, parts: Iterable[str]) -> None:
    """Add what a comparison of several parts takes: ``--only`` some of them, ``--peers``, ``--data``."""
    names = list(parts)
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--peers", nargs="*", metavar="NAME", help="by their names; none: onion alone")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of data sets")
