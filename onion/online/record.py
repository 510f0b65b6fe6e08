"""`Record`: what came into a run from outside, in the order in which it did: ``control.jsonl``.

A row is a JSON object a line. ``batch`` says before which batch of the whole run, counted from 0, something happened:

``{"batch": 7, "samples": 3}``
    The batch had 3 samples: no more came in time.
``{"batch": 8, "skipped": 40}``
    So many samples in front were rejected and passed by, before the batch had a good one.
``{"batch": 9, "pass_end": true}``
    The time of a pass was up.
``{"batch": 9, "number": 1, "command": "set", "arguments": {"learning_rate": 1e-5}, "key": null, "step": 9, ...}``
    A command.
``{"answer": 1, "result": null, "error": null, ...}``
    What became of it.

All else is a function of the samples and the seeds. So a run that follows the rows of another one, with the same
samples, ends with the same bits: after a crash a run follows those that are younger than its checkpoint, and
``onion replay`` follows them all.
"""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from time import time
from typing import IO, TYPE_CHECKING, Any

from onion.checkpointing.atomic_files import sync, sync_folder, write
from onion.checkpointing.checkpoint import plain
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CheckpointError, CompositionError, DataError
from onion.online.desk import Answer
from onion.online.place import beside_checkpoints
from onion.online.rows import Answers, Row, rows_of, whole_size
from onion.paths import anchored

if TYPE_CHECKING:
    from onion.engine.runner import Runner


log = logging.getLogger("onion")


class Record(RunnerItem):
    """Keep the record of all that comes from outside: when data were late, and what commands were given.

        Runner(Saver("run"), Record(), StreamProvider(spool), Control(), ParameterUpdater(...), GradientMachine(...))

    It stands inside the Saver and outside the items that write to it, which find it by themselves. A row is in the file
    before it takes effect, a command on the disk. A run that goes on from a checkpoint follows the rows that came after
    it: it makes the same batches of the samples, and does again what it was told; only then it looks at what is new.

    Args:
        path: the file. Default: ``control.jsonl`` in the folder of the Saver.

    Raises:
        CompositionError: there are two of them, or a writer stands outside; or there is neither a path nor a Saver.
        CheckpointError: the file is not the one that the checkpoint knows.
        DataError: a row is none.
    """

    keep_for_inference = False
    outermost_only = True
    transient = ("_offset", "offset", "_answers", "_at")  # rows have times in them

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else anchored(path)
        self.until = 0
        """In a replay: how many batches the run that is done again had drawn."""
        self._file: IO[bytes] | None = None
        self._at = self.path
        self._tail: deque[tuple[int, Row]] = deque()
        self._answers = Answers()
        self.reset()

    def reset(self) -> None:
        """Follow the file from its beginning."""
        self._offset = 0

    def check(self, runner: Runner) -> None:
        """Insist on being the only one."""
        if len(runner.all(Record)) > 1:
            raise CompositionError(f"{self.name}: a run has one Record; leave the others out.")

    def identity(self) -> dict[str, Any]:
        """Return nothing: the file may be moved."""
        return {}

    # -- the file -----------------------------------------------------------------------------------------------------

    def initialize(self, state: State) -> HookIterator:
        """Hold the file open around the run; find what is to be followed."""
        path = self._at = self.path or beside_checkpoints(state, "control.jsonl", self.name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._read(path)
            self._file = path.open("ab")
            sync_folder(path.parent)
        except OSError as error:
            raise self._refused(error) from error
        if self._tail:
            log.info("%s follows %d rows of %s", self.name, len(self._tail), path)
        try:
            yield
        finally:
            try:
                self._synced()  # a Saver further out takes the end of the run after this
            finally:
                file, self._file = self._file, None
                with suppress(OSError):  # what was to be written was
                    file.close()

    def _read(self, path: Path) -> None:
        """Find what came after the checkpoint, and the answers to all commands."""
        self._tail.clear()
        self._answers = Answers()
        size = whole_size(path)
        if size < self._offset:
            raise CheckpointError(
                f"{path} has {size} bytes, and had {self._offset} when the checkpoint was written; put the file back "
                "that belongs to it: a run does not forget what it was told."
            )
        for end, row in rows_of(path, size):
            self._answers.take(row)
            if end > self._offset and "answer" not in row:
                self._tail.append((end, row))
        self._answers.close(row["number"] for _, row in self._tail if "command" in row)
        if path.exists():
            os.truncate(path, size)  # what a kill has cut off in the middle of a row

    # -- following ----------------------------------------------------------------------------------------------------

    def follows(self, batch: int) -> bool:
        """Tell whether a run that has drawn so many batches does what was done before."""
        return bool(self._tail) or batch < self.until

    def is_done_again(self, batch: int) -> bool:
        """Tell whether a replay has come to its end; False where this is none."""
        return self.until > 0 and not self.follows(batch)

    def due(self, batch: int, kind: str) -> Row | None:
        """Take the next row, if it is of this place and kind; else None.

        Args:
            batch: how many batches the run has drawn.
            kind: ``samples``, ``pass_end`` or ``command``.

        Raises:
            DataError: the next row is of an earlier place: the record is another run's.
        """
        if not self._tail:
            return None
        end, row = self._tail[0]
        if row["batch"] < batch:
            raise DataError(
                f"{self.name}: the record tells of something before batch {row['batch']}, and the run is at batch "
                f"{batch} already; it is the record of another run, or not all its samples are there."
            )
        if row["batch"] > batch or kind not in row:
            return None
        self._tail.popleft()
        self._offset = end
        return row

    # -- writing ------------------------------------------------------------------------------------------------------

    def note(self, row: Row) -> None:
        """Write a row of what happens now; it survives the end of the process."""
        file = self._opened()
        try:
            write(file, json.dumps(row, default=plain).encode() + b"\n")
            file.flush()
        except OSError as error:
            raise self._refused(error) from error

    def command(self, batch: int, step: int, command: str, arguments: Mapping[str, Any], key: str | None) -> Row:
        """Write a command that takes effect now; it is on the disk when this returns."""
        row = {"batch": batch, "number": self._answers.number + 1, "command": command, "arguments": dict(arguments)}
        row |= {"key": key, "step": step, "time": time()}
        self.note(row)
        self._sync(self._opened())
        self._answers.number += 1
        return row

    def answer(self, row: Row, result: Any, error: str | None) -> Answer:
        """Tell what became of a command, and write it unless that was done before."""
        given = Answer(row["number"], row["command"], row["step"], result, error)
        if not self._answers.given(given.number):
            told = {"answer": given.number, "command": given.command, "step": given.step}
            self.note({**told, "result": result, "error": error, "key": row["key"]})
        return given

    @property
    def place(self) -> int:
        """How many bytes of the file are followed or written by now."""
        return self._offset

    @property
    def commands(self) -> int:
        """How many commands were given over the whole run."""
        return self._answers.number

    def known(self, key: str | None) -> Future[Answer] | None:
        """Return the answer, there or to come, of a command with this key; None: there was none."""
        return self._answers.of(key)

    def expect(self, key: str | None, command: str, arguments: Mapping[str, Any]) -> Future[Answer]:
        """Return the answer to come of a new command."""
        return self._answers.expect(key, command, arguments)

    def is_same(self, key: str | None, command: str, arguments: Mapping[str, Any]) -> bool:
        """Tell whether the command that had this key first is this one."""
        return self._answers.is_same(key, command, arguments)

    def _opened(self) -> IO[bytes]:
        assert self._file is not None, "a record is written during a run"
        return self._file

    # -- saving -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the length of the file up to what is in the checkpoint; that much is on the disk."""
        return {"offset": self._synced()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Follow what came after it."""
        self._offset = int(saved["offset"])

    def _synced(self) -> int:
        if self._file is not None and not self._tail:
            self._sync(self._file)
            self._offset = self._file.tell()
        return self._offset

    def _sync(self, file: IO[bytes]) -> None:
        try:
            sync(file)
        except OSError as error:
            raise self._refused(error) from error

    def _refused(self, error: OSError) -> CheckpointError:
        return CheckpointError(f"cannot write the record {self._at}: {error.strerror}.")
