"""The folder of a pretraining.

run.json        settings and checksums: of corpora, tokenizer, initial weights
settings.json   the settings as ``onion pretrain --settings`` reads them
encoder/        config, weights and tokenizer of the encoder, written with every checkpoint
onion.txt, onion.svg    drawings of the runner
step-*, metrics.jsonl   written by Saver and Logger
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onion.errors import CheckpointError
from onion.tasks.data.labels import apart
from onion.tasks.finetune.owned_folder import OwnedFolder
from onion.tasks.finetune.run_files import DRAWINGS, RUN_FILE, SETTINGS_FILE, write_json
from onion.tasks.pretraining.settings import PretrainingSettings

PATHS = frozenset({"corpus", "held_out", "tokenizer", "config", "encoder"})
MAY_DIFFER = PATHS | {"loggers", "shard_optimizer", "peak_gflops"}
"""Paths, whose content counts instead, and what changes no weight."""

OF_SCHEDULE = frozenset({"tasks", "stages", "max_steps", "keep", "order", "options"})
"""What an extended run may have otherwise; the schedule itself refuses what does not begin as the saved one."""


class PretrainingFolder(OwnedFolder):
    """Hold the folder of a pretraining while it runs; see ``onion.tasks.finetune.owned_folder.OwnedFolder``.

    Args:
        output: the folder.
        settings: of the pretraining.
        sums: fingerprints of what it begins with, by name.
        extend: whether the folder's run may have fewer tasks. Default False.
        force: continue in the folder of another pretraining. Default False.
    """

    own_files = (SETTINGS_FILE, "encoder", *DRAWINGS)

    def __init__(
        self,
        output: Path,
        settings: PretrainingSettings,
        sums: Mapping[str, str],
        extend: bool = False,
        force: bool = False,
    ) -> None:
        super().__init__(output, force)
        self._settings, self._sums, self.extend = settings, dict(sums), extend

    @property
    def record(self) -> Mapping[str, Any]:
        """What ``run.json`` holds."""
        return {**self._settings.as_json(), **self._sums}

    def refuse_other(self, record: Mapping[str, Any]) -> list[str]:
        """Refuse another pretraining; of one that is extended, return what its schedule has otherwise.

        Raises:
            CheckpointError: see the base class; or a task of the saved run stands behind a new one.
        """
        found = super().refuse_other(record)
        if not self.extend or not (self.output / RUN_FILE).exists():
            return found
        there, here = self.read_record(), json.loads(json.dumps(record))
        saved, tasks = there["tasks"], here["tasks"]
        if tasks[: len(saved)] != saved:  # heads that tasks share are saved under the first of them
            told = f"{self.output} has the tasks {', '.join(saved)}"
            raise CheckpointError(f"{told}; list these first, and then the new ones.")
        if len(saved) == 1 < len(tasks) and self._settings.gradient_accumulation_steps > 1:
            raise CheckpointError(
                f"{self.output}: gradient_accumulation_steps weights batches differently with one task than with "
                "several, so this run cannot be extended by tasks; start a new one."
            )
        schedule = [name for name in sorted(OF_SCHEDULE) if there.get(name) != here.get(name)]
        return [*found, *(f"{name} {apart(there.get(name), here.get(name))}" for name in schedule)]

    def advice(self, record: Mapping[str, Any]) -> str:
        """Return what else to do than to choose another folder."""
        there = self.read_record()
        extends = PretrainingFolder(self.output, self._settings, self._sums, extend=True)
        if self.extend or "tasks" not in there or any(extends.differences(there, json.loads(json.dumps(record)))):
            return super().advice(record)
        return "add tasks to this run with --extend"

    def differences(self, there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
        """Name what differs."""
        passed_over = MAY_DIFFER | OF_SCHEDULE | _files_of_new_tasks(there, here) if self.extend else MAY_DIFFER
        there, here = _without_files(there, here), _without_files(here, there)
        for name in sorted((there.keys() | here.keys()) - passed_over):
            if there.get(name) != here.get(name):
                thing = name.removesuffix("_sha256")
                told = f"{name} {apart(there.get(name), here.get(name))}"
                yield told if thing == name else f"the {thing} has other content"

    def fill(self) -> None:
        """Write the settings."""
        write_json(self.output / SETTINGS_FILE, self._settings.as_file())


def _without_files(record: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without the paths whose checksum both records have."""
    options = record.get("options", {})
    both = {name for name in options if f"{name}_sha256" in record.keys() & other.keys()}
    return {**record, "options": {name: each for name, each in options.items() if name not in both}}


def _files_of_new_tasks(there: Mapping[str, Any], here: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of checksums that only tasks have which the saved run has not."""
    new = set(here["tasks"]).difference(there.get("tasks", ()))
    return frozenset(name for name in here if name.partition(".")[0] in new)
