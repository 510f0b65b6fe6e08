"""The folder that a run's checkpoints are written into, by one run at a time, in a thread if so wanted."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Literal, TypeAlias

from onion.checkpointing import checkpoint
from onion.checkpointing.checkpoint import Checkpoint
from onion.checkpointing.lock import exclusive_lock
from onion.errors import CheckpointError

log = logging.getLogger("onion")

OnError: TypeAlias = Literal["raise", "warn"]
"""Where a checkpoint cannot be written: raise the error, or log a warning and continue."""

_at_work: dict[str, tuple[object, CheckpointWriter]] = {}
"""Folder -> whose it is, and who writes there. What a run that was interrupted has left here is no other run's."""


class CheckpointWriter:
    """Writes the checkpoints of a run into a folder, one at a time, and removes the old ones.

    Args:
        folder: where they are written.
        keep: how many of the newest are kept, besides the best.
        background: write in a thread, from copies.
        on_error: where a checkpoint cannot be written, raise the error, or log a warning and continue; may be changed.

    Attributes:
        newest: the step of the newest checkpoint, even in progress; -1: there is none, or it could not be written.
    """

    def __init__(self, folder: Path, keep: int, background: bool, on_error: OnError) -> None:
        self.on_error: OnError = on_error
        self.newest = -1
        self._folder, self._keep, self._background = folder, keep, background
        self._thread = Background()
        self._kept: list[int] = []  # which the thread may replace at any moment
        self._told = self._kept
        self._run: object = None

    @contextmanager
    def at_work_for(self, run: object) -> Iterator[None]:
        """Make the folder, lock it for a run, and remove what a killed run left half-written.

        If the inside raises an error, the current write is waited for and does not hide that error. An interrupt
        (Ctrl-C) leaves at once: the thread writes on with the folder locked, and the next run waits for it.

        Raises:
            CheckpointError: the folder cannot be made, or another run or another writer has it.
        """
        self._run = run
        checkpoint.make(self._folder)
        with exclusive_lock(self._folder, run), self._only_one():
            checkpoint.sweep(self._folder)
            try:
                yield
            except Exception:
                self.finish()
                raise

    @contextmanager
    def _only_one(self) -> Iterator[None]:
        """Keep out the writer of another Saver of the run."""
        place = os.path.realpath(self._folder)
        run, writer = _at_work.get(place, (None, self))
        if run is self._run and writer is not self:
            raise CheckpointError(f"{self._folder} is in use by another Saver of this run; choose another folder.")
        _at_work[place] = self._run, self
        try:
            yield
        finally:
            _at_work.pop(place, None)

    def go_on_from(self, saved: Checkpoint) -> None:
        """Take a checkpoint that is there for the newest; later ones were passed over, and do not count."""
        self.newest = saved.step
        self._prune(saved.step, saved.run["best_step"])  # a kill may have come before those were removed

    def write(self, taken: Checkpoint) -> None:
        """Write a checkpoint, or begin to; the one before has to be finished (``wait``)."""
        self.newest = taken.step
        if self._background:
            self._thread.start(partial(self._write, checkpoint.copied(taken)))
        else:
            with self._handling_errors():
                self._write(taken)

    def _write(self, taken: Checkpoint) -> None:
        checkpoint.make(self._folder)  # it may have been deleted, and recreated by another run
        with exclusive_lock(self._folder, self._run, lingers=self._background):
            checkpoint.write(self._folder, taken)
            self._kept = self._prune(taken.step, taken.run["best_step"])

    def _prune(self, now: int, best_step: int | None) -> list[int]:
        """Remove old checkpoints; return the steps of those that the run may go on from: not the best, if it is old."""
        steps = checkpoint.steps_in(self._folder)
        later, older = [step for step in steps if step > now], [step for step in steps if step <= now]
        checkpoint.prune(self._folder, {*later, *older[-self._keep :], *([] if best_step is None else [best_step])})
        return older[-self._keep :]

    def news(self) -> list[int]:
        """Return the steps that a run may go on from now, if a checkpoint was written since this was last asked."""
        before, self._told = self._told, self._kept
        return [] if self._told is before else self._told

    def look(self) -> None:
        """Raise what the thread has raised, if it has ended; wait for nothing."""
        if self._background:
            with self._handling_errors():
                self._thread.look()

    def wait(self) -> None:
        """Wait until nothing is being written; raise what the thread has raised."""
        with self._handling_errors():
            self._thread.wait()

    def finish(self) -> None:
        """Wait until nothing is being written, where something else matters more than whether it was."""
        with quietly():
            self._thread.wait()

    @contextmanager
    def _handling_errors(self) -> Iterator[None]:
        try:
            yield
        except CheckpointError as error:
            if self.on_error == "raise":
                raise
            self.newest = -1
            log.warning("%s The run continues without it.", error)


class NoWriter:
    """What a rank has that writes no checkpoint, since rank 0 does; see CheckpointWriter."""

    def __init__(self) -> None:
        self.on_error: OnError = "raise"
        self.newest = -1

    def at_work_for(self, run: object) -> AbstractContextManager[None]:
        """Make and lock nothing."""
        return nullcontext()

    def go_on_from(self, saved: Checkpoint) -> None:
        """Take a checkpoint for the newest."""
        self.newest = saved.step

    def write(self, taken: Checkpoint) -> None:
        """Write nothing."""

    def news(self) -> list[int]:
        """Return that nothing was written."""
        return []

    def look(self) -> None:
        """Do nothing."""

    wait = finish = look


@contextmanager
def quietly() -> Iterator[None]:
    """Log that a checkpoint could not be written, where something else matters more."""
    try:
        yield
    except CheckpointError as error:
        log.warning("%s", error)


class Background:
    """Does one piece of work at a time in a daemon thread; its error is raised where its end is asked for.

    If the wait for it is interrupted (Ctrl-C), it continues, and can be waited for again.
    """

    def __init__(self) -> None:
        self._thread: Thread | None = None
        self._error: BaseException | None = None

    def start(self, work: Callable[[], None]) -> None:
        """Begin the next piece once the one before has ended; if that failed, raise its error and begin nothing."""
        self.wait()
        self._thread = Thread(target=self._do, args=(work,), name="onion-background", daemon=True)
        self._thread.start()

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._error = error

    def look(self) -> None:
        """Raise what the work raised, if it has ended; wait for nothing."""
        if self._thread is not None and not self._thread.is_alive():
            self.wait()

    def wait(self) -> None:
        """Wait for the end of the work; raise what it raised."""
        if self._thread is not None and self._thread.is_alive():  # it is not where its start was interrupted
            self._thread.join()
        self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error
