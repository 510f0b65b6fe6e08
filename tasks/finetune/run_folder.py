"""The folder of a training: its owner, and what is needed to read the results.

run.json        the settings, the checksums of data and tokenizer, the task as fitted to the training file
settings.json   the settings as ``onion train --config`` reads them
task.json, config.json, tokenizer.json, ...    for evaluate and predict
onion.txt, onion.svg    drawings of the runner
frozen.safetensors      of a training with adapters: the encoder without them (adapters.py)
step-*, metrics.jsonl   written by Saver and Logger
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from onion.checkpointing.atomic_files import read_file
from onion.errors import CheckpointError
from onion.messages import listed
from onion.models import hub
from onion.models.downloads.repository import is_repository
from onion.models.pretrained_config import PretrainedConfig
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.data_files import DataFiles
from onion.tasks.data.dev_split import part_of
from onion.tasks.data.features.hashing import digest_of_tokenizer, ending_of
from onion.tasks.data.labels import apart
from onion.tasks.data.texts import tell_notes
from onion.tasks.finetune.declared import declared_in
from onion.tasks.finetune.loop_settings import plain_values
from onion.tasks.finetune.multitask_settings import MultiTaskSettings
from onion.tasks.finetune.owned_folder import OwnedFolder
from onion.tasks.finetune.run_files import (
    DRAWINGS,
    FROZEN,
    RUN_FILE,
    SETTINGS_FILE,
    TASK_FILE,
    no_run,
    read_json,
    write_json,
)
from onion.tasks.finetune.settings import Settings
from onion.tasks.names import current_name
from onion.tasks.registry import kind_of
from onion.tasks.task import Task

OWN_FILES = (SETTINGS_FILE, TASK_FILE, *DRAWINGS, FROZEN, "config.json", "tokenizer.json", "tokenizer_config.json")
"""What a run writes beside its record; if found without a record, they belong to something else."""
FITTED = "fitted"


class RunFolder(OwnedFolder):
    """Hold the folder of a fine-tuning while it runs; see :class:`OwnedFolder`.

    Args:
        output: the folder.
        settings: of the training.
        task: fitted to the training file; or several, by name.
        files: what it reads; or what each of several tasks reads.
        tokenizer: of the encoder.
        config: of the encoder.
        notes: warnings about each data file: path -> (what -> how often).
        force: continue in the folder of another training: log the differences, and claim the folder. Default False.

    Raises:
        CheckpointError: the folder belongs to another training, is in use by another process, or cannot be written.
    """

    own_files = OWN_FILES
    transient = ("_tokenizer",)  # it remembers words, and a resumed run does not read those that were learned from

    def __init__(
        self,
        output: Path,
        settings: Settings | MultiTaskSettings,
        task: Task | Mapping[str, Task],
        files: DataFiles | Mapping[str, DataFiles],
        tokenizer: Tokenizer,
        config: PretrainedConfig,
        notes: Mapping[str, Mapping[str, int]],
        force: bool = False,
    ) -> None:
        super().__init__(output, force)
        self._settings, self._task, self._files, self._notes = settings, task, files, notes
        self._tokenizer, self._config = tokenizer, config

    @cached_property
    def record(self) -> dict[str, Any]:
        """What ``run.json`` holds, made once, since it takes reading the data files as a whole."""
        sums = {"tokenizer_sha256": digest_of_tokenizer(self._tokenizer)}
        return {**settings_record(self._settings, self._files), **sums, FITTED: fitted_record(self._task)}

    def differences(self, there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
        """Name what differs; see :func:`differences`."""
        return differences(there, here)

    def read_record(self) -> dict[str, Any]:
        """Return the record in the folder, with the current names of settings."""
        return read_record(self.output)

    def fill(self) -> None:
        """Write settings, task, tokenizer and config."""
        write_json(self.output / SETTINGS_FILE, self._settings.as_file())
        write_json(self.output / TASK_FILE, fitted_record(self._task))
        self._tokenizer.save_pretrained(self.output)
        self._config.write(self.output)

    def tell(self) -> None:
        """Log the warnings about the data files."""
        for path, notes in self._notes.items():
            tell_notes(path, notes)


def settings_record(
    settings: Settings | MultiTaskSettings, files: DataFiles | Mapping[str, DataFiles]
) -> dict[str, Any]:
    """Return the settings with the checksums of the data files, as JSON values.

    Raises:
        DataError: a data file cannot be read.
    """
    record = settings.as_json()
    if isinstance(files, DataFiles):
        return {**record, **files.digests()}
    tasks = {name: {**task, **files[name].digests()} for name, task in record["tasks"].items()}
    return {**record, "tasks": tasks}


def fitted_record(task: Task | Mapping[str, Task]) -> dict[str, Any]:
    """Return what ``task.json`` holds: the record of a task, or under ``tasks`` those of several by name."""
    if isinstance(task, Mapping):
        return {"tasks": {name: each.record() for name, each in task.items()}}
    return task.record()


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    """Name what differs: in general, then task by task where there are several."""
    ours, theirs = _tasks_of(here), _tasks_of(there)
    if ours.keys() != theirs.keys():
        yield f"tasks {listed(theirs)} there, {listed(ours)} here"
        return
    general = (there, here) if not ours else tuple(_without(each, "tasks", FITTED) for each in (there, here))
    yield from _differences_of_part(*general)
    for name in ours:
        yield from (f"{name}: {each}" for each in _differences_of_part(theirs[name], ours[name]))


def _tasks_of(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return settings, checksums and fitted task of each of several tasks; of a training of one task, nothing."""
    fitted = record.get(FITTED, {}).get("tasks", {})
    return {name: {**task, FITTED: fitted.get(name, {})} for name, task in record.get("tasks", {}).items()}


def _without(record: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


def _differences_of_part(there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    """Name what differs.

    A data file is content and ending, wherever it is, and a part of the training file is its share or fold; the fitted
    task has all its options; loggers come and go, and so do processes that share the optimizer's state.
    """
    for name in ("train", "dev"):
        given = [str(record.get(name)) for record in (there, here)]
        endings = list(map(ending_of, given))
        if given[0] != given[1] and any(map(part_of, given)):
            yield f"{name} {given[0]} there, {given[1]} here"
        elif endings[0] != endings[1]:
            yield f"the {name} file ends in {endings[0] or 'nothing'} there, in {endings[1] or 'nothing'} here"
    # A run of an earlier version of onion has no record of the settings that have come since: they are the default.
    one, other = ({**DEFAULTS, **record, **record.get(FITTED, {})} for record in (there, here))
    apart_from = {"train", "dev", "options", "loggers", "shard_optimizer", FITTED}
    apart_from |= _unknown_then(there, here) | _told_by_content(there, here)
    for name in sorted((one.keys() | other.keys()) - apart_from):
        if one.get(name) != other.get(name):
            file = name.removesuffix("_sha256")
            told = f"{name} {apart(one.get(name), other.get(name))}"
            of_weights = f"the weights of the {file} are different" if name in BY_CONTENT.values() else None
            yield told if file == name else of_weights or f"the {file} file has other content"


def _told_by_content(there: Mapping[str, Any], here: Mapping[str, Any]) -> set[str]:
    """Return the folders whose content is known of both; and the checksums that an earlier version has not written."""
    folders = {name for name, digest in BY_CONTENT.items() if there.get(digest) and here.get(digest)}
    return folders | {digest for digest in BY_CONTENT.values() if digest not in there}


def _unknown_then(there: Mapping[str, Any], here: Mapping[str, Any]) -> set[str]:
    """Return the settings of the task that an earlier version did not have, and that do not affect the training."""
    fitted = here.get(FITTED, {})
    return set(kind_of(fitted["task"]).adjustable()) - there.get(FITTED, {}).keys() if "task" in fitted else set()


BY_CONTENT = {
    "run": "run_sha256",
    "encoder": "run_sha256",  # of a compression, which begins with the run
    "teacher": "teacher_sha256",
    "logits": "teacher_sha256",  # a folder that holds those of other examples is refused on its own
}
"""Folders in the records of trainings by a teacher -> the checksum by which another place is the same one."""

DEFAULTS = {name: plain_values(None, None, default) for name, (_, default) in declared_in(Settings).items()}

RENAMED = {
    "best": "monitor",
    "clip": "max_grad_norm",
    "init": "init_from",
    "lr": "learning_rate",
    "warmup": "warmup_ratio",
}
"""Settings in the records of older runs: old name -> current name."""


def find_run(name_or_folder: str | Path) -> Path:
    """Return the folder of a run: the given one, or that of ``OWNER/NAME[@REVISION]``, downloaded if necessary.

    A folder takes precedence, as in :func:`onion.models.hub.resolve`.

    Raises:
        WeightsError: the repository cannot be downloaded; the message says what to do.
        CheckpointError: the repository has an encoder only.
    """
    folder, name = Path(name_or_folder), str(name_or_folder)
    if folder.exists() or not is_repository(name):
        return folder
    found = hub.resolve(name)
    if not (found / RUN_FILE).exists():
        raise CheckpointError(f"{name} holds no run of onion; give a model from onion push, or the folder of a run.")
    return found


def read_record(folder: Path) -> dict[str, Any]:
    """Return the record of the run in a folder, with the current names of its settings and its task.

    Raises:
        CheckpointError: there is none, or it is damaged.
    """
    record = read_json(folder, RUN_FILE)
    if not isinstance(record, dict):
        raise no_run(folder, RUN_FILE)
    record = {RENAMED.get(name, name): value for name, value in record.items()}
    for part in (record, record.get(FITTED)):  # several tasks have come later than the old names
        if isinstance(part, dict) and "task" in part:
            part["task"] = current_name(part["task"])
    return record


def trained_columns(folder: Path, task_name: str | None = None) -> Mapping[str, str]:
    """Return the columns of onion and of the files that a run was trained on, where they differ; older runs have none.

    Raises:
        CheckpointError: there is no run in the folder.
    """
    record = read_record(folder)
    trained: Mapping[str, Any] = record if task_name is None else record["tasks"][task_name]
    found: Mapping[str, str] = trained.get("columns") or {}
    return found


def read_drawing(folder: Path) -> str:
    """Return the drawing of a run's onion as text.

    Raises:
        CheckpointError: it is missing.
    """
    try:
        return read_file(folder / DRAWINGS[0]).decode(errors="replace")
    except OSError:
        raise no_run(folder, DRAWINGS[0]) from None
