"""How many tokens of text an example has room for."""

from __future__ import annotations

from onion.errors import DataError
from onion.tasks.pretraining.task import PretrainingTask


def room(task: PretrainingTask, special: int) -> int:
    """Return the most tokens of text of an example.

    Args:
        task: its ``max_length`` includes special tokens.
        special: how many special tokens an example has.

    Raises:
        DataError: there is no room.
    """
    if task.max_length <= special:
        told = f"leaves no room for text beside {special} special tokens"
        raise DataError(f"{task.name}: max_length {task.max_length} {told}")
    return task.max_length - special
