"""The item that holds the folder of a training against other trainings and other processes."""

from __future__ import annotations

import json
import logging
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from onion import HookIterator, RunnerItem, State
from onion.checkpointing.lock import exclusive_lock
from onion.checkpointing.run_state import outermost
from onion.engine.drawing import as_svg
from onion.errors import CheckpointError
from onion.paths import anchored, shortened
from onion.tasks.finetune.run_files import DRAWINGS, RUN_FILE, read_json, write_json, write_text

log = logging.getLogger("onion")


class OwnedFolder(RunnerItem):
    """Hold a folder while a training runs.

    When the run starts, the folder is created, locked, claimed by a record of the training (``run.json``) and filled
    with what is needed to read the results, in this order. The same training is resumed in its folder.

    Args:
        output: the folder.
        force: continue in the folder of another training: log the differences, and claim the folder. Default False.

    Raises:
        CheckpointError: the folder belongs to another training, is in use by another process, or cannot be written.
    """

    passive = first_rank_only = True
    own_files: ClassVar[tuple[str, ...]] = DRAWINGS
    """What a run writes beside its record; if found without a record, they belong to something else."""

    def __init__(self, output: Path, force: bool = False) -> None:
        self._output, self.force = anchored(output), force
        self._claimed = False

    @property
    @abstractmethod
    def record(self) -> Mapping[str, Any]:
        """What ``run.json`` holds."""

    @abstractmethod
    def differences(self, there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
        """Name what differs between the record in a folder and this one."""

    @abstractmethod
    def fill(self) -> None:
        """Write what is needed to read the results."""

    def read_record(self) -> Mapping[str, Any]:
        """Return the record in the folder."""
        found: Mapping[str, Any] = read_json(self.output, RUN_FILE)
        return found

    def tell(self) -> None:
        """Log what the user should know of the data."""

    @property
    def output(self) -> Path:
        """The folder, as short as it can be written from the working directory."""
        return Path(shortened(self._output))

    def look(self) -> None:
        """Raise the errors of a start as far as possible, without writing anything."""
        if self.output.is_dir():
            with exclusive_lock(self.output, self):
                self.refuse_other(self.record)
        elif self.output.exists():
            raise CheckpointError(f"cannot write {self.output / RUN_FILE}: {self.output} is a file; choose a folder.")

    def initialize(self, state: State) -> HookIterator:
        """Create, lock, claim and fill the folder; release it at the end."""
        record = self.record  # before creating the folder: a data file may be missing
        self._make()
        with exclusive_lock(self.output, outermost(state)):
            differing = self.refuse_other(record)
            self._claimed = False
            if differing:
                log.warning("continuing in %s although it differs: %s", self.output, "; ".join(differing))
            else:
                self._claim(state)
            self.tell()
            yield

    def on_pass(self, state: State) -> None:
        """Claim the folder of another training, now that its checkpoint is known to fit."""
        if not self._claimed:
            self._claim(state)

    def refuse_other(self, record: Mapping[str, Any]) -> list[str]:
        """Refuse a folder that holds another training, unless forced, or files that a training would overwrite.

        Returns:
            How the training in the folder differs; empty unless forced.

        Raises:
            CheckpointError: the message lists the differences, or names the file.
        """
        output = self.output
        if (output / RUN_FILE).exists():
            differing = list(self.differences(self.read_record(), json.loads(json.dumps(record))))
            if differing and not self.force:
                told = f"{output} holds another run ({'; '.join(differing)})"
                raise CheckpointError(f"{told}; choose another folder with --output, or {self.advice(record)}.")
            return differing
        own = [name for name in self.own_files if (output / name).exists()]
        foreign = [*own, *(path.name for path in output.glob("step-*"))]
        if foreign:
            raise CheckpointError(
                f"{output} holds {foreign[0]}, but no run of onion; choose another folder with --output."
            )
        return []

    def advice(self, record: Mapping[str, Any]) -> str:
        """Return what else to do than to choose another folder, where this one holds another training."""
        return "continue in this one with --force-resume"

    def _make(self) -> None:
        try:
            self.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(f"cannot write {self.output / RUN_FILE}: {error.strerror}.") from None

    def _claim(self, state: State) -> None:
        write_json(self.output / RUN_FILE, self.record)
        self.fill()
        assert state.runner is not None
        for name, drawing in zip(DRAWINGS, (f"{state.runner}\n", as_svg(state.runner)), strict=True):
            write_text(self.output / name, drawing)
        self._claimed = True
