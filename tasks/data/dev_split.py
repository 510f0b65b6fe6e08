"""A part of the training file, left out of it to test on: a share, or a fold of a cross-validation."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from onion.data.files import FORMATS, iter_lines, iter_rows
from onion.errors import DataError
from onion.tasks.data.features.hashing import digest_of_file, ending_of
from onion.tasks.data.prepared import digest, json_line, written
from onion.tasks.data.rows import AT

STRATA = 1000
"""Labels up to which a split keeps their shares; more of them are no classes, but numbers or lists of tags."""


FOLD = re.compile(r"(\d+)/(\d+)")

Chosen: TypeAlias = Callable[[Sequence[Any], int], set[int]]
"""(labels, seed) -> the places of those that are left out of the training."""


def part_of(dev: str) -> Chosen | None:
    """Return how a part of the training file is chosen to test on; None: what stands there is a file.

    Args:
        dev: a share, such as ``0.1``; or a fold, such as ``2/5``, the second of five.

    Raises:
        DataError: there is no such fold, or the number is no share.
    """
    if Path(dev).exists():
        return None
    if fold := FOLD.fullmatch(dev):
        number, count = int(fold[1]), int(fold[2])
        if not (count >= 2 and 1 <= number <= count):
            raise DataError(f"dev: there is no fold {dev}; the folds of five are 1/5, 2/5, ... and 5/5")
        return partial(dealt, number, count)
    try:
        share = float(dev.removesuffix("%"))
    except ValueError:
        return None
    if dev.endswith("%") or not 0 < share < 1:
        raise DataError(f"dev: {dev} is neither a file nor a share; a share is between 0 and 1, such as 0.2")
    return partial(chosen, share)


def split(path: Path, dev: str, seed: int, together: str | None = None) -> tuple[Path, Path]:
    """Return two files with the rows of one: those to train on and a part of them to test on, each in its order.

    The part is drawn with the seed, from each label by itself (stratified) where the rows have a label that is a text
    or a number of some classes.

    Args:
        path: a file that a task can read (``prepared``).
        dev: a share or a fold (``part_of``).
        seed: of the choice.
        together: a column; the rows that have the same value in it stay in one file, and labels do not count.

    Raises:
        DataError: the file is of no format of rows, or one of the two would be empty; file and line are named.
    """
    part = part_of(dev)
    assert part is not None
    lines, labels, groups, ending = _read(path, together)
    tested = _in_groups(part, groups, seed) if any(group is not None for group in groups) else part(labels, seed)
    if not 0 < len(tested) < len(lines):
        raise DataError(f"{path}: {dev} of {len(lines)} rows leaves nothing to {'train' if tested else 'test'} on")
    key = [digest_of_file(path), str(path), dev, seed, together]
    train = (line for place, line in enumerate(lines) if place not in tested)
    test = (line for place, line in enumerate(lines) if place in tested)
    return written(digest([*key, "train"]), ending, lambda: train), written(digest([*key, "dev"]), ending, lambda: test)


def _read(path: Path, together: str | None) -> tuple[list[bytes], list[Any], list[Any], str]:
    """Return the rows of a file as lines to write, their labels, their groups, and the ending of the file to write."""
    ending = ending_of(path)
    if ending == ".txt":
        lines = [f"{line}\n".encode() for _, line in iter_lines(path)]
        return lines, [None] * len(lines), [None] * len(lines), ending
    if ending not in FORMATS:
        raise DataError(f"{path}: rows can be left out of {', '.join(FORMATS)} and .txt files only; give a dev file")
    rows = list(iter_rows(path))
    lines = [json_line({AT: [str(path), line], **row}) for line, row in rows]
    groups = [None if together is None else row.get(together) for _, row in rows]
    return lines, [row.get("label") for _, row in rows], groups, ".jsonl"


def _in_groups(part: Chosen, groups: Sequence[Any], seed: int) -> set[int]:
    """Return the places of whole groups; a row without a group is one by itself."""
    members: dict[Any, list[int]] = defaultdict(list)
    for place, group in enumerate(groups):
        members[(place,) if group is None else str(group)].append(place)
    found = part([None] * len(members), seed)
    return {place for number, places in enumerate(members.values()) if number in found for place in places}


def chosen(share: float, labels: Sequence[Any], seed: int) -> set[int]:
    """Return the places of a share of some labels, drawn from each label by itself."""
    strata = _strata(labels, share)
    draw = np.random.default_rng(seed)
    found: set[int] = set()
    for places in strata:
        most = len(places) - (len(strata) > 1)  # a label that is all tested could not be learned
        found.update(int(place) for place in draw.permutation(places)[: min(most, round(share * len(places)))])
    return found


def dealt(number: int, count: int, labels: Sequence[Any], seed: int) -> set[int]:
    """Return the places of one of ``count`` folds, counted from 1: the labels are shuffled each by itself and dealt.

    Folds have no place in common, and their sizes differ by one at most, also within a label. A label of a single place
    is in no fold, since it could not be learned where it is tested.
    """
    draw = np.random.default_rng(seed)
    strata = [draw.permutation(places) for places in _strata(labels, 1 / count)]
    deck = [int(place) for places in strata if len(places) > 1 or len(strata) == 1 for place in places]
    return set(deck[number - 1 :: count])


def _strata(labels: Sequence[Any], share: float) -> list[list[int]]:
    """Return the places of each label; all in one where a share of them has not room for all labels."""
    strata: dict[Any, list[int]] = defaultdict(list)
    for place, label in enumerate(labels):
        strata[label if isinstance(label, str | int | float) else None].append(place)
    return list(strata.values()) if len(strata) <= min(STRATA, share * len(labels)) else [list(range(len(labels)))]
