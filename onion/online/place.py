"""Where the files of an online run stand."""

from __future__ import annotations

from pathlib import Path

from onion.engine.state import State
from onion.errors import CompositionError
from onion.items.saver import Saver


def beside_checkpoints(state: State, file: str, whose: str) -> Path:
    """Return the path of a file in the folder of the run's Saver.

    Raises:
        CompositionError: there is no Saver.
    """
    savers = [] if state.runner is None else state.runner.all(Saver)
    if not savers:
        raise CompositionError(
            f"{whose} has no place for {file}: put a Saver around it, in whose folder it stands, or give it a path."
        )
    return savers[0].folder / file
