"""The commands that a file is given to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs

from spoiling.ground import Ground
from spoiling.tables import TABLES
from spoiling.ways import Spoilt


@attrs.frozen
class Command:
    """One call of the command line.

    Attributes:
        name: what the file is to it.
        words: its arguments.
        output: what it writes, and nothing else.
        input: the file that is its standard input, or None.
    """

    name: str
    words: list[str]
    output: Path
    input: Path | None = None


def commands_for(spoilt: Spoilt, ground: Ground) -> Iterator[Command]:
    """Give every command that reads such a file."""
    task, path, room = spoilt.task, spoilt.path, spoilt.path.parent
    room = next(each for each in (room, *room.parents) if each.is_dir())  # of a path through a file
    good, run, out = ground.good(task), str(ground.run(task)), room / "out"
    yield Command("train", ground.training(task, path, good, out), out)
    yield Command("stream", [*ground.training(task, path, good, out), "--stream"], out)
    yield Command("dev", ground.training(task, good, path, out), out)
    yield Command("evaluate", ["evaluate", "--from", run, "--data", str(path), "--threads", "1"], out)
    predict = ["predict", "--from", run, "--output", str(out), "--threads", "1", "--input"]
    yield Command("predict", [*predict, str(path)], out)
    if _is_file(path):
        yield Command("lines", [*predict, "-"], out, input=path)
    if path.suffix in TABLES:
        words = ["embed", "--quiet", "--encoder", str(ground.encoder), "--max-length", "24", "--threads", "1"]
        yield Command("embed", [*words, "--input", str(path), "--out", str(out)], out)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False
