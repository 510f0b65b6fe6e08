"""What came of an attack: bits that differ, wrong answers, commands, open and half-written files, errors in the log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onion.checkpointing import checkpoint
from onion.checkpointing.atomic_files import PARTIAL
from onion.checkpointing.checkpoint import Checkpoint
from onion.errors import CheckpointError
from onion.online import SpoolWriter
from scripts.online.processes import python, until
from scripts.service_attack.trainer import BATCH, STEPS

JOURNAL = "journal.jsonl"
"""The file in a run's folder that has the commands."""

PLACED = ("stream_provider", "journal", "control_server")
"""Items whose state tells what else came, and not what was learned."""


def newest(folder: Path) -> Checkpoint:
    found = checkpoint.newest(folder)
    if found is None:
        raise SystemExit(f"{folder} holds no checkpoint")
    return found


def differences(one: Checkpoint, other: Checkpoint) -> list[str]:
    """Return in what two checkpoints differ, bit by bit, of all that was learned and the random generators."""
    first, second = _bits(one), _bits(other)
    return sorted(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))


def _bits(taken: Checkpoint) -> dict[str, bytes | str]:
    learned = {
        f"{name}/{key}": _of(value)
        for name, saved in taken.items.items()
        if name not in PLACED
        for key, value in saved.items()
    }
    generators = {f"generators/{name}": json.dumps(state) for name, state in taken.run["generators"].items()}
    return {**learned, **generators, "step": str(taken.step)}


def _of(value: object) -> bytes | str:
    if not hasattr(value, "dtype"):
        return json.dumps(value)
    array = np.asarray(value)
    return f"{array.dtype}{array.shape}".encode() + array.tobytes()


def wrong_answers(tallies: Mapping[str, Counter[str]]) -> dict[str, int]:
    """Return how often a hostile request was heeded, or broke something: a success, or an error of the service.

    ``replayed`` may succeed, with the answer of the command that has the key; a full service answers 503.
    """
    counts: Counter[str] = Counter()
    for name, tally in tallies.items():
        for status, count in tally.items():
            heeded = status.startswith("2") and name != "replayed"
            if status.isdigit() and (heeded or (status.startswith("5") and status != "503")):
                counts[f"{name}: {status}"] += count
    return dict(counts)


def commands_in(record: Path) -> list[str]:
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    return [row["command"] for row in rows if "number" in row]


def compared(attacked: Path, room: Path) -> dict[str, Any]:
    """Learn as many batches of the same samples undisturbed, in the empty folder ``room``, and compare."""
    disturbed = newest(attacked)
    (room / "run").mkdir(parents=True)
    # The commands only: where samples were rejected is nothing that the undisturbed run has.
    rows = [
        line for line in (attacked / JOURNAL).read_text().splitlines(keepends=True) if "command" in json.loads(line)
    ]
    (room / "run" / JOURNAL).write_text("".join(rows))
    with SpoolWriter(room / "samples.db") as writer:
        for begin in range(0, disturbed.step * BATCH, 1000):
            writer.write([{"id": number} for number in range(begin, begin + 1000)])
    alone = python("scripts.service_attack.trainer", room, STEPS, disturbed.step)
    try:
        until(lambda: alone.over)
    finally:
        alone.end()
    differs = differences(disturbed, newest(room / "run"))
    rejected = disturbed.items["stream_provider"]["rejected"]
    return {"step": disturbed.step, "rejected": rejected, "same": not differs, "differs": differs}


MAX_LEFT_OPEN = 8
"""Files that may be open after the attacks besides those before."""

SIGNS = ("Traceback", "ERROR", "CRITICAL")
"""Of an error in a log."""


def handles(process: int) -> int:
    """Return how many files and connections a process has open; -1 where that is not known."""
    folder = Path("/proc", str(process), "fd")
    return len(list(folder.iterdir())) if folder.is_dir() else -1


def half_written(folder: Path) -> list[str]:
    """Return what is not whole of all that a run has written: checkpoints, lines of JSON, what was to be renamed."""
    names = [path.name for path in folder.rglob("*") if path.name.endswith(PARTIAL)]
    names += [path.name for path in folder.glob("step-*") if not _is_whole(path)]
    return sorted(names + [path.name for path in folder.glob("*.jsonl") if not _has_whole_lines(path)])


def _is_whole(folder: Path) -> bool:
    try:
        checkpoint.read(folder)
    except CheckpointError:
        return False
    return True


def _has_whole_lines(path: Path) -> bool:
    content = path.read_bytes()
    try:
        for line in content.splitlines():
            json.loads(line)
    except ValueError:
        return False
    return not content or content.endswith(b"\n")


def complaints(log: Path) -> list[str]:
    """Return the lines of a log with which an error begins, that of a service or of a run."""
    return [line for line in log.read_text(errors="replace").splitlines() if any(sign in line for sign in SIGNS)]
