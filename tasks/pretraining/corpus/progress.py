"""The progress bar of a build: megabytes of text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from onion.monitoring.bars import open_bar, shows_bars
from onion.tasks.pretraining.corpus.encoding import Counts
from onion.tasks.pretraining.corpus.raw_text import PLAIN_TEXT


@contextmanager
def progress(inputs: Sequence[str], quiet: bool = False) -> Iterator[Callable[[Counts], object]]:
    """Show a bar on a terminal or in a notebook; yield what is to be called with what is there, and with what is added.

    The bar knows its end if all inputs are plain text: what is packed, or in JSON, has another size on the disk.
    """
    if quiet or not shows_bars(sys.stderr):
        yield lambda counts: None
        return
    paths = [Path(each) for each in inputs]
    plain = all(path.suffix == PLAIN_TEXT and path.is_file() for path in paths)
    total = sum(path.stat().st_size for path in paths) if plain else None
    with open_bar(sys.stderr, total=total, unit="B", unit_scale=True) as bar:
        calls = count()
        yield lambda counts: _tell(bar, counts.bytes, there=next(calls) == 0)


def _tell(bar: Any, size: int, there: bool) -> None:
    if there:
        bar.n = bar.initial = size  # what an earlier process has done does not count as speed
        bar.refresh()
    else:
        bar.update(size if bar.total is None else min(size, bar.total - bar.n))  # a file may lack its last line end
