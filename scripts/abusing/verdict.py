"""Whether anything came of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from onion.checkpointing import checkpoint
from onion.checkpointing.checkpoint import Checkpoint

JOURNAL = "journal.jsonl"
"""The file in a run's folder that has the commands."""

PLACED = ("stream_provider", "journal", "control_server")
"""Items whose state tells what else came, and not what was learned."""


def newest(folder: Path) -> Checkpoint:
    """Return the newest checkpoint of a run."""
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


def commands_in(journal: Path) -> list[str]:
    """Return the commands that took effect."""
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    return [row["command"] for row in rows if "number" in row]
