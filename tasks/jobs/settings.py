"""The settings of a training job, and the file in its folder that remembers them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs

from onion.disk import locked, replace_file
from onion.errors import CheckpointError, DataError
from onion.tasks.features.cache import digest_of_file

RUN_FILE = "run.json"
TASK_FILE = "task.json"
DRAWINGS = ("onion.txt", "onion.svg")
OWN_FILES = (TASK_FILE, *DRAWINGS, "config.json", "tokenizer.json", "tokenizer_config.json")
"""What a run writes beside its record; found without one, they are somebody else's."""


def _checked(wanted: str, fits: Callable[[Any], bool]) -> Any:
    """Return a validator that says what a setting has to be."""

    def check(settings: Any, field: Any, value: Any) -> None:
        if not fits(value):
            raise DataError(f"{field.name}: {value!r} is not {wanted}")

    return check


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _float(value: Any) -> Any:
    """YAML takes 5e-5 for a text; so do JSON files that quote their numbers."""
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return value


_text = _checked("a text", lambda value: isinstance(value, str) and value != "")
_switch = _checked("true or false", lambda value: isinstance(value, bool))
_natural = _checked("a whole number from 1", lambda value: _whole(value) and value >= 1)
_seed = _checked("a whole number from 0 to 4294967295", lambda value: _whole(value) and 0 <= value < 2**32)
_positive = _checked("a number above 0", lambda value: isinstance(value, float) and 0 < value < float("inf"))
_not_negative = _checked("a number from 0", lambda value: isinstance(value, float) and 0 <= value < float("inf"))
_share = _checked("a number from 0 to 1", lambda value: isinstance(value, float) and 0 <= value <= 1)


@attrs.frozen(kw_only=True)
class Settings:
    """What ``onion train`` was asked to do.

    Attributes:
        task: the name of the task.
        train: the training file.
        dev: the file to test on while training.
        encoder: a known name or a folder.
        init: a folder of ``onion train`` or one of its checkpoints, whose weights are the beginning; its config and
            tokenizer count instead of the encoder's.
        init_head: take the head from there too; otherwise it begins anew.
        passes: over the training file.
        batch_size: examples a batch.
        lr: the highest learning rate.
        seed: of everything that is random.
        test_every: steps between two tests; None: four times a pass.
        warmup: the share of the steps in which the learning rate rises.
        weight_decay: decoupled weight decay.
        clip: the largest global norm of the gradients.
        stream: read the training file anew in every pass, in its own order, and keep no features of it.
        options: the settings of the task itself, such as ``max_length``.
    """

    task: str = attrs.field(validator=_text)
    train: str = attrs.field(validator=_text)
    dev: str = attrs.field(validator=_text)
    encoder: str = attrs.field(default="minilm", validator=_text)
    init: str | None = attrs.field(default=None, validator=attrs.validators.optional(_text))
    init_head: bool = attrs.field(default=False, validator=_switch)
    passes: int = attrs.field(default=3, validator=_natural)
    batch_size: int = attrs.field(default=32, validator=_natural)
    lr: float = attrs.field(default=5e-5, converter=_float, validator=_positive)
    seed: int = attrs.field(default=1, validator=_seed)
    test_every: int | None = attrs.field(default=None, validator=attrs.validators.optional(_natural))
    warmup: float = attrs.field(default=0.1, converter=_float, validator=_share)
    weight_decay: float = attrs.field(default=0.01, converter=_float, validator=_not_negative)
    clip: float = attrs.field(default=1.0, converter=_float, validator=_positive)
    stream: bool = attrs.field(default=False, validator=_switch)
    options: Mapping[str, Any] = attrs.field(factory=dict)

    def record(self) -> dict[str, Any]:
        """Return the settings with the checksums of the data files, as JSON values.

        Raises:
            DataError: a data file cannot be read.
        """
        sums = {"train_sha256": digest_of_file(self.train), "dev_sha256": digest_of_file(self.dev)}
        return {**attrs.asdict(self), "options": dict(self.options), **sums}


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
