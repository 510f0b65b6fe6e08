"""A checkpoint that rank 0 reads and writes for all: the others need no folder in common with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onion.checkpointing import checkpoint
from onion.checkpointing.checkpoint import Checkpoint
from onion.errors import CheckpointError

if TYPE_CHECKING:
    from onion.distributed.group import Group


def newest_of_first(group: Group, folder: Path) -> Checkpoint | None:
    """Return the newest whole checkpoint in a folder of rank 0, on all ranks; None: there is none.

    Args:
        group: the ranks, all of which call this.
        folder: read on rank 0 only.

    Raises:
        CheckpointError: on rank 0: the folder cannot be read; the others raise a RankError.
    """
    saved = checkpoint.newest(folder) if group.rank == 0 else None
    arrays, values = ({}, {}) if saved is None else _apart(saved)
    head = None if saved is None else {"step": saved.step, "run": saved.run, "values": values}
    head = group.everyone({"checkpoint": head})[0]["checkpoint"]
    arrays = group.from_first(arrays)
    if saved is not None or head is None:
        return saved
    items: dict[str, dict[str, Any]] = {name: dict(own) for name, own in head["values"].items()}
    for place, array in arrays.items():
        name, _, key = place.partition("\n")
        items[name][key] = array
    return Checkpoint(head["step"], head["run"], items)


@contextmanager
def written_for_all(group: Group) -> Iterator[None]:
    """Raise on all ranks what rank 0 meets when it writes in here.

    Raises:
        CheckpointError: rank 0 could not write.
    """
    failed: CheckpointError | None = None
    try:
        yield
    except CheckpointError as error:
        failed = error
    told = group.everyone({"at": {"place": "a checkpoint"}, "failed_to_write": failed and str(failed)})
    if failed is not None or told[0]["failed_to_write"] is not None:
        raise failed or CheckpointError(told[0]["failed_to_write"])


def _apart(saved: Checkpoint) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the arrays of a checkpoint by item and key, and all other values by item."""
    arrays = {
        f"{name}\n{key}": value
        for name, own in saved.items.items()
        for key, value in own.items()
        if isinstance(value, np.ndarray)
    }
    values = {
        name: {key: value for key, value in own.items() if not isinstance(value, np.ndarray)}
        for name, own in saved.items.items()
    }
    return arrays, values
