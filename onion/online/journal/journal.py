"""`Journal`: the external inputs of a run, in the order in which they arrived: ``journal.jsonl``.

A row is a JSON object per line. ``batch`` is the number of the batch, counted over the whole run from 0, before which
something happened:

``{"batch": 7, "samples": 3}``
    The batch was cut to 3 samples: no more arrived in time.
``{"batch": 8, "skipped": 40}``
    40 rejected samples in front were skipped before the batch had a good one.
``{"batch": 9, "pass_end": true}``
    The time of a pass had elapsed.
``{"batch": 9, "number": 1, "command": "set", "arguments": {"learning_rate": 1e-5}, "key": null, "step": 9, ...}``
    A command.
``{"answer": 1, "result": null, "error": null, ...}``
    Its outcome.

All else is a function of the samples and the seeds. So a run that follows the rows of another one, with the same
samples, is bit-identical to it: after a crash a run follows the rows written after its checkpoint, and ``onion replay``
follows them all.
"""

from __future__ import annotations

import json
import logging
import os
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from time import time
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from onion.checkpointing.atomic_files import sync, sync_folder, write
from onion.checkpointing.checkpoint import plain
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CheckpointError, CompositionError, DataError
from onion.items.saver import Saver
from onion.online.control.run_api import Answer
from onion.paths import anchored
from onion.validation import is_whole

if TYPE_CHECKING:
    from onion.engine.runner import Runner

log = logging.getLogger("onion")

FILE, OLD_FILE = "journal.jsonl", "control.jsonl"
"""Name of the file in the Saver's folder: for new runs, and of earlier versions, which is continued."""

JournalRow: TypeAlias = dict[str, Any]

MAX_KEYS = 10_000  # number of latest commands that are recognised by their keys


class Journal(RunnerItem):
    """Record all external inputs: batches cut because data were late, and commands.

        Runner(Saver("run"), Journal(), StreamProvider(spool), ControlServer(), ParameterUpdater(...), ...)

    Place it inside the Saver and outside the items that write to it, which find it by themselves. A row is in the file
    before it takes effect; a command is synced to disk. A run that resumes from a checkpoint follows the rows written
    after it: it makes the same batches of the samples and repeats the same commands, and only then accepts new ones.
    In several processes rank 0 writes and follows it.

    Args:
        path: of the file. Default: ``journal.jsonl`` in the folder of the Saver; or ``control.jsonl`` if an earlier
            version has written that file there.

    Raises:
        CompositionError: there are two journals, or neither a path nor a Saver.
        CheckpointError: the file is not the one that belongs to the checkpoint.
        DataError: a line is not a row of a journal.
    """

    keep_for_inference = False
    outermost_only = True
    transient = ("_offset", "offset", "answers", "_at")  # rows have times in them

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else anchored(path)
        self.until = 0
        """In a replay: the number of batches that the replayed run had drawn."""
        self._file: IO[bytes] | None = None
        self._at = self.path
        self._tail: deque[tuple[int, JournalRow]] = deque()
        self.answers = Answers()
        self.reset()

    def reset(self) -> None:
        """Follow the file from its beginning."""
        self._offset = 0

    def check(self, runner: Runner) -> None:
        """Require that the run has one journal."""
        if len(runner.all(Journal)) > 1:
            raise CompositionError(f"{self.name}: a run has one Journal; leave the others out.")

    def identity(self) -> dict[str, Any]:
        """Return nothing: the file may be moved."""
        return {}

    # -- the file -----------------------------------------------------------------------------------------------------

    def initialize(self, state: State) -> HookIterator:
        """Keep the file open during the run; read the rows to follow. Of several processes, rank 0 has it."""
        if self.group is not None and self.group.rank > 0:
            yield
            return
        path = self._at = self.path or journal_in(beside_checkpoints(state, FILE, self.name).parent)
        with self._writing():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._read(path)
            self._file = path.open("ab")
            sync_folder(path.parent)
        if self._tail:
            log.info("%s follows %d rows of %s", self.name, len(self._tail), path)
        try:
            yield
        finally:
            try:
                self._synced()  # a Saver outside saves the end of the run after this
            finally:
                file, self._file = self._file, None
                with suppress(OSError):  # everything has been written
                    file.close()

    def _read(self, path: Path) -> None:
        """Read the rows after the checkpoint, and the answers to all commands."""
        self._tail.clear()
        self.answers = Answers()
        size = whole_size(path)
        if size < self._offset:
            raise CheckpointError(
                f"{path} has {size} bytes, and had {self._offset} when the checkpoint was written; restore the file "
                "that belongs to the checkpoint: its commands cannot be skipped."
            )
        for end, row in rows_of(path, size):
            self.answers.take(row)
            if end > self._offset and "answer" not in row:
                self._tail.append((end, row))
        self.answers.close(row["number"] for _, row in self._tail if "command" in row)
        if path.exists():
            os.truncate(path, size)  # the incomplete row of a crash

    # -- following ----------------------------------------------------------------------------------------------------

    def follows(self, batch: int) -> bool:
        """Return whether a run that has drawn this many batches still follows earlier rows."""
        return bool(self._tail) or batch < self.until

    def is_replayed(self, batch: int) -> bool:
        """Return whether a replay has reached its end; False if this is no replay."""
        return self.until > 0 and not self.follows(batch)

    def due(self, batch: int, kind: str) -> JournalRow | None:
        """Take the next row, if it is of this batch and kind; otherwise return None.

        See ``ahead``.
        """
        row = self.ahead(batch, kind)
        if row is not None:
            self._offset, _ = self._tail.popleft()
        return row

    def ahead(self, batch: int, kind: str) -> JournalRow | None:
        """Return the next row, if it is of this batch and kind; otherwise None.

        Args:
            batch: the number of batches that the run has drawn.
            kind: ``samples``, ``pass_end`` or ``command``.

        Raises:
            DataError: the next row is for an earlier batch: the journal is another run's.
        """
        if not self._tail:
            return None
        _, row = self._tail[0]
        if row["batch"] < batch:
            raise DataError(
                f"{self.name}: the journal has a row for batch {row['batch']}, and the run is at batch {batch} "
                "already; it is the journal of another run, or some of its samples are missing."
            )
        if row["batch"] > batch or kind not in row:
            return None
        return row

    # -- writing ------------------------------------------------------------------------------------------------------

    def note(self, row: JournalRow) -> None:
        """Write a row; it survives the end of the process."""
        file = self._opened()
        with self._writing():
            write(file, json.dumps(row, default=plain).encode() + b"\n")
            file.flush()

    def command(self, batch: int, step: int, command: str, arguments: Mapping[str, Any], key: str | None) -> JournalRow:
        """Write a command that takes effect now; it is on disk when this returns."""
        row = {"batch": batch, "number": self.answers.number + 1, "command": command, "arguments": dict(arguments)}
        row |= {"key": key, "step": step, "time": time()}
        self.note(row)
        with self._writing():
            sync(self._opened())
        self.answers.number += 1
        return row

    def answer(self, row: JournalRow, result: Any, error: str | None) -> Answer:
        """Return the answer to a command, and write it unless it was written before."""
        given = Answer(row["number"], row["command"], row["step"], result, error)
        if not self.answers.given(given.number):
            kept = {"answer": given.number, "command": given.command, "step": given.step}
            self.note({**kept, "result": result, "error": error, "key": row["key"]})
        return given

    @property
    def place(self) -> int:
        """Length of the part of the file that has been followed or written."""
        return self._offset

    @property
    def commands(self) -> int:
        """Number of commands over the whole run."""
        return self.answers.number

    def _opened(self) -> IO[bytes]:
        assert self._file is not None, "a journal is written during a run"
        return self._file

    # -- saving -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the length of the file that is in the checkpoint; that much is on disk."""
        return {"offset": self._synced()}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Follow the rows after the checkpoint."""
        self._offset = int(saved["offset"])

    def _synced(self) -> int:
        if self._file is not None and not self._tail:
            with self._writing():
                sync(self._file)
            self._offset = self._file.tell()
        return self._offset

    def _writing(self) -> AbstractContextManager[None]:
        return writing(f"the journal {self._at}")


# -- the file ----------------------------------------------------------------------------------------------------------


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Convert the system's errors into CheckpointError; ``what`` is written."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(f"cannot write {what}: {error.strerror}.") from error


def journal_in(folder: Path) -> Path:
    """Return the path of a run's journal in the folder of its checkpoints."""
    return folder / (OLD_FILE if (folder / OLD_FILE).exists() and not (folder / FILE).exists() else FILE)


def beside_checkpoints(state: State, file: str, owner: str) -> Path:
    """Return the path of a file in the folder of the run's Saver; raise CompositionError if there is no Saver."""
    savers = [] if state.runner is None else state.runner.all(Saver)
    if not savers:
        raise CompositionError(f"{owner} has no folder for {file}: put a Saver around it, or give it a path.")
    return savers[0].folder / file


def whole_size(path: Path) -> int:
    """Return the length of a file up to the end of its last complete line; 0 if there is none."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        end = file.seek(0, 2)
        while end > 0:
            begin = max(0, end - 4096)
            file.seek(begin)
            found = file.read(end - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
    return 0


def rows_of(path: Path, size: int) -> Iterator[tuple[int, JournalRow]]:
    """Yield the rows of the first bytes of a file, each with the offset of its end; raise DataError for other lines."""
    if not size:
        return
    place = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            place += len(line)
            if place > size:
                return
            yield place, _parsed(line, f"{path}, line {number}")


def _parsed(line: bytes, where: str) -> JournalRow:
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{where}: this is no row of a journal ({error}); restore the file as the run wrote it."
        ) from None
    if not _is_row(row):
        raise DataError(f"{where}: this is no row of a journal; restore the file as the run wrote it.")
    return dict(row)


def _is_row(row: Any) -> bool:
    """Return whether a JSON value is a row of one of the kinds listed above."""
    if not isinstance(row, dict):
        return False
    if "answer" in row:
        complete = {"command", "step", "result", "error", "key"} <= row.keys()
        return complete and is_whole(row["answer"]) and _is_key(row["key"])
    if not is_whole(row.get("batch")) or row["batch"] < 0:
        return False
    if "command" in row:
        whole = is_whole(row.get("number")) and is_whole(row.get("step"))
        named = isinstance(row["command"], str) and isinstance(row.get("arguments"), dict)
        return whole and named and _is_key(row.get("key"))
    return row.get("pass_end") is True or any(
        is_whole(row.get(each)) and row[each] > 0 for each in ("samples", "skipped")
    )


def _is_key(key: object) -> bool:
    return key is None or isinstance(key, str)


class Answers:
    """The latest commands with a key, and their answers, present or future; ``number`` is that of the last command."""

    def __init__(self) -> None:
        self.number = 0
        self._by_key: OrderedDict[str, Future[Answer]] = OrderedDict()
        self._asked: dict[str, tuple[str, dict[str, Any]]] = {}
        self._rows: dict[str, JournalRow] = {}
        self._given: set[int] = set()

    def take(self, row: JournalRow) -> None:
        """Read a row."""
        if "command" in row and "number" in row:
            self.number = row["number"]
            if row["key"] is not None:
                self.expect(row["key"], row["command"], row["arguments"])
                self._rows[row["key"]] = row
        elif "answer" in row:
            self._given.add(row["answer"])
            if row["key"] in self._by_key:
                answer = Answer(row["answer"], row["command"], row["step"], row["result"], row["error"])
                self._by_key[row["key"]].set_result(answer)

    def close(self, to_come: Iterable[int]) -> None:
        """Answer the commands that took effect but lost their answer in a crash; not those still to be repeated."""
        waiting = set(to_come)
        for key, row in self._rows.items():
            future = self._by_key.get(key)
            if future is not None and not future.done() and row["number"] not in waiting:
                future.set_result(Answer(row["number"], row["command"], row["step"]))
        self._rows.clear()
        self._given &= waiting

    def given(self, number: int) -> bool:
        """Return whether the answer of a repeated command was written before."""
        return number in self._given

    def of(self, key: str | None) -> Future[Answer] | None:
        """Return the answer of the command with this key, present or future."""
        return None if key is None else self._by_key.get(key)

    def expect(self, key: str | None, command: str, arguments: Mapping[str, Any]) -> Future[Answer]:
        """Return the future answer of a new command, stored by its key."""
        future: Future[Answer] = Future()
        if key is not None:
            self._by_key[key], self._asked[key] = future, (command, dict(arguments))
            if len(self._by_key) > MAX_KEYS:
                oldest, _ = self._by_key.popitem(last=False)
                del self._asked[oldest]
        return future

    def is_same(self, key: str | None, command: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether the first command with this key is this one."""
        return key is not None and self._asked[key] == (command, dict(arguments))
