"""A share of the training file, left out of it to test on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onion.data.files import FORMATS, iter_lines, iter_rows
from onion.errors import DataError
from onion.tasks.data.features.hashing import digest_of_file, ending_of
from onion.tasks.data.prepared import digest, json_line, written
from onion.tasks.data.rows import AT

STRATA = 1000
"""Labels up to which a split keeps their shares; more of them are no classes, but numbers or lists of tags."""


def is_share(dev: str) -> bool:
    """Tell whether what stands for a dev file is a share, such as ``0.1``."""
    try:
        return 0 < float(dev) < 1 and not Path(dev).exists()
    except ValueError:
        return False


def split(path: Path, share: float, seed: int) -> tuple[Path, Path]:
    """Return two files with the rows of one: those to train on and a share of them to test on, each in its order.

    The share is drawn with the seed, from each label by itself (stratified) where the rows have a label that is a text
    or a number of some classes.

    Args:
        path: a file that a task can read (``prepared``).
        share: above 0 and below 1.
        seed: of the choice.

    Raises:
        DataError: the file is of no format of rows, or one of the two would be empty; file and line are named.
    """
    ending = ending_of(path)
    if ending == ".txt":
        rows: list[tuple[Any, bytes]] = [(None, f"{line}\n".encode()) for _, line in iter_lines(path)]
    elif ending in FORMATS:
        rows = [(row.get("label"), json_line({AT: [str(path), line], **row})) for line, row in iter_rows(path)]
        ending = ".jsonl"
    else:
        raise DataError(f"{path}: no share of a {ending} file can be left out; give a dev file")
    tested = chosen([label for label, _ in rows], share, seed)
    if not 0 < len(tested) < len(rows):
        raise DataError(f"{path}: {share} of {len(rows)} rows leaves nothing to {'train' if tested else 'test'} on")
    key = [digest_of_file(path), str(path), share, seed]
    train = (line for place, (_, line) in enumerate(rows) if place not in tested)
    dev = (line for place, (_, line) in enumerate(rows) if place in tested)
    return written(digest([*key, "train"]), ending, lambda: train), written(digest([*key, "dev"]), ending, lambda: dev)


def chosen(labels: Sequence[Any], share: float, seed: int) -> set[int]:
    """Return the places of a share of some labels, drawn from each label by itself."""
    strata: dict[Any, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        strata[label if isinstance(label, str | int | float) else None].append(place)
    if len(strata) > min(STRATA, share * len(labels)):
        strata = defaultdict(list, {None: list(range(len(labels)))})
    draw = np.random.default_rng(seed)
    found: set[int] = set()
    for places in strata.values():
        most = len(places) - (len(strata) > 1)  # a label that is all tested could not be learned
        found.update(int(place) for place in draw.permutation(places)[: min(most, round(share * len(places)))])
    return found
