"""What two folders of runs differ in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from onion.checkpointing.checkpoint import folder_of, read, steps_in
from onion.errors import CheckpointError

ASIDE = re.compile(r"-\d+\.(jsonl|log)$")
"""A log that belongs to no checkpoint, which the Logger or VisualDL's writer has moved aside: of a run that was killed
before its first one."""

TIMED = ("seconds", "offset")
"""What the state of a log has that depends on how long the run took. The rows themselves are compared."""


def differences(folder: Path, other: Path) -> list[str]:
    """Return in what the run of a folder differs from that of another, in words; nothing if in nothing."""
    torn_ones = [*torn(folder), *torn(other)]
    return torn_ones or [
        *_between_names(folder, other),
        *(f"{name} is left" for name in sorted(_names(folder)) if ".partial" in name),
        *_between_logs(folder, other),
        *between_checkpoints(folder, other),
    ]


def torn(folder: Path) -> list[str]:
    """Return what is wrong with the checkpoints that have a final name."""
    return [complaint for step in steps_in(folder) for complaint in _complaint(folder_of(folder, step))]


def _complaint(checkpoint: Path) -> Iterator[str]:
    try:
        read(checkpoint)
    except CheckpointError as error:
        yield f"torn: {error}"


def _names(folder: Path) -> set[str]:
    names = (str(path.relative_to(folder)) for path in folder.rglob("*"))
    return {name for name in names if not ASIDE.search(name)}


def _between_names(folder: Path, other: Path) -> Iterator[str]:
    ours, theirs = _names(folder), _names(other)
    if ours != theirs:
        yield f"files: {_outermost(ours - theirs)} too many, {_outermost(theirs - ours)} missing"


def _outermost(names: set[str]) -> list[str]:
    """Return the names without those that stand in a folder which is among them."""
    return sorted(name for name in names if str(Path(name).parent) not in names)


def _between_logs(folder: Path, other: Path) -> Iterator[str]:
    logs = (name for name in sorted(_names(folder) & _names(other)) if name.endswith(".jsonl"))
    for name in logs:
        ours, theirs = _rows(folder / name), _rows(other / name)
        if ours != theirs:
            row = next((row for row, both in enumerate(zip(ours, theirs, strict=False)) if both[0] != both[1]), -1)
            shown = f"row {row}: {ours[row]}, not {theirs[row]}" if row >= 0 else "one is longer"
            yield f"{name} has {len(ours)} rows, not {len(theirs)}; {shown}"


def _rows(log: Path) -> list[str]:
    """Return the rows of a log as text, without what depends on how long the run took."""
    return [_untimed(line) for line in log.read_text().splitlines()]


def _untimed(line: str) -> str:
    try:
        return json.dumps({key: value for key, value in json.loads(line).items() if key != "seconds"})
    except ValueError:  # a torn row
        return line


def between_checkpoints(folder: Path, other: Path) -> Iterator[str]:
    """Give what the checkpoints of the steps that both have differ in."""
    for step in sorted({*steps_in(folder)} & {*steps_in(other)}):
        ours, theirs = _flat(folder, step), _flat(other, step)
        for key in sorted({*ours, *theirs}):
            if words := _between_values(ours.get(key, ""), theirs.get(key, "")):
                yield f"step {step}, {key}: {words}"


def _flat(folder: Path, step: int) -> dict[str, str | np.ndarray]:
    """Return all that is in a checkpoint, by the way to it: arrays, and all else as text that names no folder."""
    checkpoint = read(folder_of(folder, step))
    flat = {f"run {key}": value for key, value in checkpoint.run.items()}
    for name, saved in checkpoint.items.items():
        flat[name] = sorted(saved)
        timed = TIMED if "seconds" in saved else ()
        flat.update({f"{name} {key}": value for key, value in saved.items() if key not in timed})
    return {
        key: value if isinstance(value, np.ndarray) else json.dumps(value).replace(str(folder), "FOLDER")
        for key, value in flat.items()
    }


def _between_values(ours: str | np.ndarray, theirs: str | np.ndarray) -> str:
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        return _between_arrays(ours, theirs)
    return "" if str(ours) == str(theirs) else _between_texts(str(ours), str(theirs))


def _between_texts(ours: str, theirs: str, width: int = 60) -> str:
    """Return the place where two texts begin to differ."""
    shorter = min(len(ours), len(theirs))
    place = next((place for place in range(shorter) if ours[place] != theirs[place]), shorter)
    begin = max(place - width // 2, 0)
    return f"at {place}: {ours[begin : begin + width]!r}, not {theirs[begin : begin + width]!r}"


def _between_arrays(ours: np.ndarray, theirs: np.ndarray) -> str:
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return f"{ours.dtype}{list(ours.shape)}, not {theirs.dtype}{list(theirs.shape)}"
    if ours.tobytes() == theirs.tobytes():
        return ""
    return f"{np.count_nonzero(ours != theirs)} of {ours.size} elements differ"
