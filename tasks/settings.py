"""The settings of a training job, and the file in its folder that remembers them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs

from onion.disk import locked, replace_file
from onion.errors import CheckpointError, DataError

RUN_FILE = "run.json"
LABELS = "labels.json"
DRAWINGS = ("onion.txt", "onion.svg")
OWN_FILES = (LABELS, *DRAWINGS, "config.json", "tokenizer.json", "tokenizer_config.json")
"""What a run writes beside its record; found without one, they are somebody else's."""


@attrs.frozen
class Settings:
    """What ``onion train`` was asked to do.

    Attributes:
        task: the name of the task.
        train: the training file.
        dev: the file to test on while training.
        encoder: a known name or a folder.
        passes: over the training file.
        batch_size: examples a batch.
        lr: the highest learning rate.
        max_length: tokens an example may have.
        seed: of everything that is random.
        test_every: steps between two tests; None: four times a pass.
        warmup: the share of the steps in which the learning rate rises.
        weight_decay: decoupled weight decay.
        clip: the largest global norm of the gradients.
    """

    task: str
    train: str
    dev: str
    encoder: str = "minilm"
    passes: int = 3
    batch_size: int = 32
    lr: float = 5e-5
    max_length: int = 128
    seed: int = 1
    test_every: int | None = None
    warmup: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0

    def record(self) -> dict[str, Any]:
        """Return the settings with the checksums of the data files, as JSON values.

        Raises:
            DataError: a data file cannot be read.
        """
        return {**attrs.asdict(self), "train_sha256": _digest(self.train), "dev_sha256": _digest(self.dev)}


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}.") from None


def claim_folder(out: Path, record: dict[str, Any]) -> bool:
    """Make the folder of a run, or recognise it as this run's; tell whether there is a run to go on with.

    Raises:
        CheckpointError: it holds another run (the differences are listed), or cannot be made.
    """
    known = out / RUN_FILE
    if known.exists():
        differences = _differences(read_record(out), record)
        if differences:
            raise CheckpointError(
                f"{out} holds another run ({'; '.join(differences)}); choose another folder with --out."
            )
        return True
    foreign = [*(name for name in OWN_FILES if (out / name).exists()), *(path.name for path in out.glob("step-*"))]
    if foreign:
        raise CheckpointError(f"{out} holds {foreign[0]}, but no run of onion; choose another folder with --out.")
    write_json(known, record)
    return False


@contextmanager
def alone_in(out: Path) -> Iterator[None]:
    """Hold the folder of a run against a second process with the same command.

    Raises:
        CheckpointError: there is one already.
    """
    with ExitStack() as held:
        try:
            held.enter_context(locked(out))
        except BlockingIOError:
            raise CheckpointError(f"another process is training in {out}; wait for it, or stop it first.") from None
        yield


def _differences(there: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """Name the settings that differ. A data file is what is in it, wherever it stands."""
    differences = []
    for name in sorted((there.keys() | here.keys()) - {"train", "dev"}):
        if there.get(name) != here.get(name):
            file = name.removesuffix("_sha256")
            told = f"{name} {there.get(name)!r} there, {here.get(name)!r} here"
            differences.append(told if file == name else f"the {file} file has other content")
    return differences


def read_record(folder: Path) -> dict[str, Any]:
    """Return the settings of the run in a folder.

    Raises:
        CheckpointError: there is none.
    """
    record = read_json(folder, RUN_FILE)
    if not isinstance(record, dict):
        raise _no_run(folder, RUN_FILE)
    return record


def read_json(folder: Path, name: str) -> Any:
    """Read a JSON file that ``onion train`` wrote.

    Raises:
        CheckpointError: it is missing or damaged.
    """
    try:
        return json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise _no_run(folder, name) from None


def _no_run(folder: Path, name: str) -> CheckpointError:
    return CheckpointError(f"{folder} holds no run of onion ({name} is missing or damaged); train first.")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically, and its folder where it is missing.

    Raises:
        CheckpointError: the disk refused.
    """
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, and its folder where it is missing.

    Raises:
        CheckpointError: the disk refused.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())
    except OSError as error:
        raise CheckpointError(f"cannot write {path}: {error.strerror}.") from None
