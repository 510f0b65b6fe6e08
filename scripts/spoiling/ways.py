"""All ways to spoil a file, in an order that is drawn: each way comes before any comes a second time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

import attrs

from spoiling import bytes as of_bytes
from spoiling import cells, places
from spoiling.tables import TASKS, endings, good_records, written

SELDOM = 40
"""So many files to one with a line that is longer than any may be: it takes a second."""


@attrs.frozen
class Spoilt:
    """A spoilt file.

    Attributes:
        task: whose good file it was.
        way: how it was spoilt.
        path: the file, or what stands in its place.
    """

    task: str
    way: str
    path: Path


def spoilt_files(folder: Path, seed: int) -> Iterator[Spoilt]:
    """Put spoilt files into a folder, one by one and without end; the same ones for a seed.

    Args:
        folder: an empty one.
        seed: of all draws.
    """
    draw = Random(seed)  # noqa: S311  not for secrets
    kinds = [(module, way) for module in (of_bytes, cells, places) for way in module.WAYS]
    for number in count():
        if number % len(kinds) == 0:
            draw.shuffle(kinds)
        module, way = kinds[number % len(kinds)]
        if number % SELDOM == SELDOM - 1:
            module, way = of_bytes, of_bytes.endless_line
        task = TASKS[number % len(TASKS)]
        ending = draw.choice(endings(task))
        room = folder / f"{number}"
        room.mkdir()
        path, records = room / f"data{ending}", good_records(task, draw)
        if module is places:
            path = way(path, written(records, ending))
        elif module is cells:
            path.write_bytes(way(draw, records, ending))
        else:
            path.write_bytes(way(draw, written(records, ending)))
        yield Spoilt(task, way.__name__, path)
