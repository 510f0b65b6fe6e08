"""Checkpoints on disk: exact, atomic, checked.

    out/step-00000400/
        manifest.json              format version, step, size and sha256 of every other file
        state.json                 counters, metrics, generators, the items' scalars
        <item>.safetensors         the items' arrays

A checkpoint is written beside its final name, every file and the folder are synced to disk, then it is renamed; so a
folder with a final name is whole unless the disk damaged it, which the manifest shows. No pickle is written or read.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from onion.checkpointing import atomic_files
from onion.checkpointing.format_1 import renamed
from onion.errors import CheckpointError
from onion.paths import shortened

FORMAT = 2
MANIFEST, STATE, ARRAYS = "manifest.json", "state.json", ".safetensors"
REMEDY = "delete the folder of this checkpoint, and the run resumes from the previous one"
OLD, DOOMED = f".old{atomic_files.PARTIAL}", f".doomed{atomic_files.PARTIAL}"

log = logging.getLogger("onion")


@attrs.frozen
class Checkpoint:
    """A checkpoint in memory.

    Attributes:
        step: the run's step when it was taken.
        run: the run's own values (counters, metrics, generators) as JSON values.
        items: each item's ``state_dict``, by the item's name; arrays are numpy's.
    """

    step: int
    run: dict[str, Any]
    items: dict[str, dict[str, Any]]


def copied(checkpoint: Checkpoint) -> Checkpoint:
    """Return a checkpoint that nothing changes any more: arrays are copied to numpy's, all else is as JSON has it."""
    scalars = json.loads(_packed_state(checkpoint))
    arrays = {
        name: {key: _copy(value) for key, value in saved.items() if _is_array(value)}
        for name, saved in checkpoint.items.items()
    }
    items = {name: {**scalars["items"][name], **arrays[name]} for name in checkpoint.items}
    return Checkpoint(checkpoint.step, scalars["run"], items)


def folder_of(folder: Path, step: int) -> Path:
    """Return the folder of the checkpoint of a step."""
    return folder / f"step-{step:08d}"


def steps_in(folder: Path) -> list[int]:
    """Return the steps that have a checkpoint in a folder, the oldest first. Nothing is checked."""
    names = [path.name.removeprefix("step-") for path in folder.glob("step-*") if path.is_dir()]
    return sorted(int(name) for name in names if name.isdecimal())


def make(folder: Path) -> None:
    """Make the folder of checkpoints, so that an unusable place is an error before the run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(f"cannot create the folder {folder}: {error.strerror}; choose another.") from error


def write(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint atomically; return its folder.

    Raises:
        CheckpointError: the disk refused (no space, no permission), or a state holds what no checkpoint can; nothing is
            left half-written, older ones are whole.
    """
    final = folder_of(folder, checkpoint.step)
    partial = final.with_name(final.name + atomic_files.PARTIAL)
    if os.path.lexists(final) and not final.is_dir():
        raise CheckpointError(f"cannot write the checkpoint {final}: a file of that name exists; move it.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _clear(partial)
        partial.mkdir()
        sizes = {name: _write_file(partial / name, content) for name, content in _files(checkpoint)}
        manifest = {"format": FORMAT, "step": checkpoint.step, "files": sizes}
        _write_file(partial / MANIFEST, json.dumps(manifest, indent=1).encode())
        atomic_files.sync_folder(partial)
        _swap_in(partial, final)
    except BaseException as error:
        with suppress(CheckpointError):  # on a disk that fails, this may fail too; the next start sweeps
            _sweep(final)
        if isinstance(error, OSError):
            what = error.strerror or error
            raise CheckpointError(f"cannot write the checkpoint {shortened(final)}: {what}.") from error
        raise
    return final


def _swap_in(partial: Path, final: Path) -> None:
    """Rename the finished folder to its final name; an older one of the same step makes way first."""
    if final.exists():
        old = final.with_name(final.name + OLD)
        _clear(old)
        atomic_files.rename(final, old)
        atomic_files.rename(partial, final)
        atomic_files.remove_tree(old)
    else:
        atomic_files.rename(partial, final)
    atomic_files.sync_folder(final.parent)


def _files(checkpoint: Checkpoint) -> Iterator[tuple[str, bytes]]:
    """Give the files of a checkpoint one by one, so that only one is in memory."""
    for name, saved in checkpoint.items.items():
        if wrong := [key for key in saved if not isinstance(key, str)]:
            raise CheckpointError(
                f"the state of {name} has the key {wrong[0]!r}, which would be restored as a string; use a string."
            )
        arrays = {key: _array(value) for key, value in saved.items() if _is_array(value)}
        if arrays:
            yield f"{name}{ARRAYS}", _packed(name, arrays)
    yield STATE, _packed_state(checkpoint)


def _packed_state(checkpoint: Checkpoint) -> bytes:
    scalars = {
        name: {key: value for key, value in saved.items() if not _is_array(value)}
        for name, saved in checkpoint.items.items()
    }
    try:
        return json.dumps({"run": checkpoint.run, "items": scalars}, default=plain).encode()
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"a state has a value that JSON cannot hold ({error}); return arrays and JSON scalars."
        ) from error


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray) or hasattr(value, "numpy")


def _array(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(value if isinstance(value, np.ndarray) else value.numpy(), order="C")


def _copy(value: Any) -> np.ndarray[Any, Any]:
    array = _array(value)  # of a tensor this is a copy
    return array.copy() if isinstance(value, np.ndarray) else array


def _packed(name: str, arrays: dict[str, np.ndarray[Any, Any]]) -> bytes:
    try:
        if "__metadata__" in arrays:
            raise ValueError("the key __metadata__ is the file format's own")
        return bytes(save_arrays(arrays))
    except (SafetensorError, ValueError) as error:
        raise CheckpointError(f"the state of {name} holds an array that cannot be saved: {error}.") from error


def plain(value: object) -> Any:
    """Turn a numpy scalar into Python's, for ``json.dumps(default=plain)``."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def _write_file(path: Path, content: bytes) -> dict[str, Any]:
    """Write and sync a file; return its entry in the manifest."""
    atomic_files.write_synced(path, content)
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def read(path: Path) -> Checkpoint:
    """Read and check one checkpoint folder.

    Raises:
        CheckpointError: a file is missing, damaged, or of a newer format; the message says which.
    """
    manifest = _read_manifest(path)
    with _of_onion(path / MANIFEST):
        content = {name: _checked(path / _plain_name(name), entry) for name, entry in manifest["files"].items()}
        raw_state = content.pop(STATE)
    with _of_onion(path / STATE):
        state = json.loads(raw_state)
        run, items = dict(state["run"]), {name: dict(scalars) for name, scalars in state["items"].items()}
    for name, raw in content.items():
        with _of_onion(path / name):
            items[name.removesuffix(ARRAYS)].update(load_arrays(raw))
    if manifest["format"] == 1:
        run, items = renamed(run, items)
    return Checkpoint(step=int(manifest["step"]), run=run, items=items)


@contextmanager
def _of_onion(file: Path) -> Iterator[None]:
    """Say of which file it is that something is missing in it or is not of the kind that onion writes."""
    try:
        yield
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError, SafetensorError) as error:
        told = f"{type(error).__name__}: {error}"
        raise CheckpointError(f"{file}: not written by onion ({told}); {REMEDY}.") from error


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(atomic_files.read_file(path / MANIFEST))
        version, step, _ = manifest["format"], int(manifest["step"]), manifest["files"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise CheckpointError(f"{path}: {MANIFEST} is missing or damaged; {REMEDY}.") from error
    if version not in range(1, FORMAT + 1):
        raise CheckpointError(
            f"{path}: format {version!r} is unknown to this version of onion, which reads 1 to {FORMAT}."
        )
    if path.name.startswith("step-") and path.name != folder_of(path, step).name:
        raise CheckpointError(f"{path}: {MANIFEST} is of step {step}; was the folder renamed?")
    return dict(manifest)


def _plain_name(name: str) -> str:
    """Return the name of a file beside the manifest; one that leads elsewhere is a ValueError."""
    if "/" in name or "\\" in name or "\0" in name or not (name == STATE or name.endswith(ARRAYS)):
        raise ValueError(f"{name!r} is not a file of a checkpoint")
    return name


def _checked(path: Path, entry: Mapping[str, Any]) -> bytes:
    """Read a file and hold it against its entry in the manifest."""
    try:
        content = atomic_files.read_file(path)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}; {REMEDY}.") from error
    if len(content) != entry["size"] or hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise CheckpointError(f"{path}: damaged; its size or checksum differs from the manifest; {REMEDY}.")
    return content


def newest(folder: Path) -> Checkpoint | None:
    """Return the newest valid checkpoint of a folder, or None if it has none; damaged ones are skipped and logged.

    Raises:
        CheckpointError: there are checkpoints, and none is valid.
    """
    steps = steps_in(folder)
    for step in reversed(steps):
        try:
            return read(folder_of(folder, step))
        except CheckpointError as error:
            log.warning("skipped a checkpoint: %s", error)
    if steps:
        raise CheckpointError(f"none of the {len(steps)} checkpoints in {folder} is valid; the log has the reasons.")
    return None


def prune(folder: Path, keep: set[int]) -> None:
    """Remove all checkpoints but those of some steps; one that the disk does not let go of stays, and that is said."""
    for step in set(steps_in(folder)) - keep:
        path = folder_of(folder, step)
        doomed = path.with_name(path.name + DOOMED)
        try:
            atomic_files.rename(path, doomed)  # so that a kill never leaves a torn folder with a final name
            atomic_files.remove_tree(doomed)
        except OSError as error:
            log.warning("cannot remove the old checkpoint %s: %s", path, error.strerror)


def sweep(folder: Path) -> None:
    """Remove what a killed run left half-written; restore what it was about to replace.

    Only for the run that has the lock, before it writes. CheckpointError if a checkpoint cannot be restored.
    """
    for rest in folder.glob(f"step-*{atomic_files.PARTIAL}"):
        _sweep(folder / rest.name.partition(".")[0])
    atomic_files.remove_abandoned(folder)


def _sweep(final: Path) -> None:
    """Remove what is left half-written of one checkpoint, or put back what it was about to replace."""
    old = final.with_name(final.name + OLD)
    if old.is_dir() and not final.exists():
        try:
            atomic_files.rename(old, final)
        except OSError as error:
            raise CheckpointError(f"cannot rename {old} back to {final.name}: {error.strerror}.") from error
    for ending in (OLD, DOOMED, atomic_files.PARTIAL):
        _clear(final.with_name(final.name + ending))


def _clear(folder: Path) -> None:
    """Remove a folder if it exists; an error of the disk is ignored. A file of that name is the user's, and stays."""
    if folder.is_dir():
        with suppress(OSError):
            atomic_files.remove_tree(folder)
