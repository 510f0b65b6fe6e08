"""What scripts share of their command lines and of what they print."""

from __future__ import annotations

import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence


def parser_of(text: str | None, seed: bool = True) -> ArgumentParser:
    """Return a parser with ``text`` as its help and, unless told otherwise, ``--seed``."""
    parser = ArgumentParser(description=text, formatter_class=RawDescriptionHelpFormatter)
    if seed:
        default = time.time_ns() % 10**6
        parser.add_argument("--seed", type=int, default=default, help="of all draws; default: another each time")
    return parser


def columns(rows: Sequence[Sequence[object]]) -> str:
    """Return a table of plain text: the first row is its head; numbers are aligned to the right."""
    head, *lines = rows
    cells = [list(map(str, row)) for row in rows]
    widths = [max(len(row[place]) for row in cells) for place in range(len(head))]
    right = [bool(lines) and all(isinstance(row[place], int) for row in lines) for place in range(len(head))]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    )
