"""Run a piece of work in a process of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAST_LINES = 12


class FailedError(Exception):
    """A piece of work did not come to its end; the message says what it last said."""


def run_logged(title: object, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    """Run a command at the top of the repository.

    Args:
        title: of the piece of work, for messages.
        command: and its arguments.
        environment: variables that are set, besides those of this process.
        log: everything that the command writes.

    Raises:
        FailedError: it ended with another status than 0.
    """
    with log.open("wb") as file:
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, stdout=file, stderr=file)
    if done.returncode:
        raise FailedError(f"{title}: ended with status {done.returncode}; {end_of(log)}")


def end_of(log: Path) -> str:
    """Return the last lines of a log, for an error: ``LOG ends ...``."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
    return "\n".join([f"{log} ends", *lines])
