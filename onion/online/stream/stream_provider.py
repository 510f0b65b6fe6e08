"""`StreamProvider`: batches of samples as they arrive."""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping, Sequence
from datetime import timedelta
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onion.data.batching import collate as stack
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError, HookError
from onion.items.data_provider import refuse_other_data
from onion.items.saver import Saver
from onion.online.journal.journal import Journal, beside_checkpoints
from onion.online.sources.source import Position, Source
from onion.online.stream.batch_assembler import AssembledBatch, BatchAssembler, Collate, Prepare
from onion.online.stream.batch_decisions import BatchDecisions
from onion.online.stream.stream_batches import SharedStream, StreamBatches
from onion.online.stream.stream_position import StreamPosition
from onion.paths import anchored
from onion.validation import is_number, is_whole

if TYPE_CHECKING:
    from onion.engine.runner import Runner


class StreamProvider(RunnerItem):
    """Make batches of samples as they arrive from an endless source.

        spool = Spool("samples.db")
        Runner(Saver("run", every=500), Journal(), StreamProvider(spool, batch_size=32, pass_every=10_000), ...).run()

    A batch is full, or as large as it got within ``max_wait`` seconds of its first sample. A pass is a number of
    samples, or a duration, so items that act at the ends of passes (Saver, Tester) work on streams too.

    **Each sample is trained on exactly once.** The position in the source is saved in the same checkpoint as the
    weights: after a crash, samples that were delivered but are not in the checkpoint are delivered again, and those
    that are in it are not. The source may remove what is in all checkpoints that the run may resume from.

    The sizes of batches, and the ends of passes by time, depend on when samples arrived; with a Journal outside, a run
    can still be replayed bit by bit. While no sample arrives, a Mailbox or a ControlServer inside is served.

    In several processes (``onion.distributed``) rank 0 alone reads the source, writes the journal and the rejected
    samples, and lets the source remove what is saved. It hands each rank the samples of its pieces, which that rank
    prepares and collates. Rank 0 prepares and collates all, to find those that cannot be used.

    Args:
        source: of the samples: ``Spool``, ``RedisStream``, ``Folder``, or your own (see ``sources/source.py``).
        batch_size: samples per batch. Default 32.
        max_wait: seconds from the first sample of a batch until it is given even if it is not full. Default 1.
        pass_every: a number of samples, from 1, or a ``timedelta``. A pass by time has at least one batch; one that was
            interrupted and is resumed gets its whole time again.
        prepare: makes an example of a sample's data (JSON); its error is the reason why the sample is rejected.
            Default: the data are the example.
        collate: makes a batch of a list of examples. An example that cannot be collated with the others is rejected.
            Default: stack arrays and numbers field by field.
        rejected: file for rejected samples. Default: ``rejected.jsonl`` in the Saver's folder; without a Saver they are
            only counted.

    Raises:
        CompositionError: an argument is invalid, or another item provides data too.
        DataError: during the run: the source is damaged, or lacks the samples that come next.
        HookError: an inner run reads the stream too.
    """

    provides_data = True
    # Samples read ahead are read again; a resumed run does not repeat the time at which a pass ended.
    transient = ("_assembler", "_places", "_decisions", "source", "_state", "_like")

    def __init__(
        self,
        source: Source,
        batch_size: int = 32,
        *,
        pass_every: int | timedelta,
        max_wait: float = 1.0,
        prepare: Prepare | None = None,
        collate: Collate = stack,
        rejected: str | Path | None = None,
    ) -> None:
        _check_arguments(source, batch_size, max_wait, pass_every)
        self.source, self.batch_size, self.max_wait, self.pass_every = source, batch_size, max_wait, pass_every
        self.rejected = None if rejected is None else anchored(rejected)
        self.prepare, self.collate = prepare, collate
        self._assembler = BatchAssembler(source, prepare, collate)
        self._decisions = BatchDecisions()
        self._state: weakref.ref[State] | None = None
        self._keeps = self._under_way = False
        self.reset()

    def reset(self) -> None:
        """Start at the beginning of the source."""
        self._progress = StreamPosition()
        self._places: dict[int, Position] = {}
        """Position in the source at each checkpoint, by its step."""
        self._like: Any = None

    def check(self, runner: Runner) -> None:
        """Require that no other item provides data, and that the Journal is outside."""
        refuse_other_data(self, runner)
        inside = runner.inside(self)
        for journal in runner.all(Journal):
            if any(journal is item for item in inside):
                raise CompositionError(f"{journal.name} is inside {self.name}; move it out (before it).")

    # -- running ------------------------------------------------------------------------------------------------------

    def initialize(self, state: State) -> HookIterator:
        """Continue after the last sample that was trained on; release the source at the end."""
        if self._under_way:
            raise HookError(
                f"{self.name} is in use by the outer run, and a sample is delivered once; give the inner run its own "
                "data."
            )
        self._under_way, self._state = True, weakref.ref(state)
        if not self._reads:
            try:
                yield
            finally:
                self._under_way = False
            return
        self._decisions = BatchDecisions(_journal_of(state))
        self._keeps = bool(state.runner is not None and state.runner.all(Saver))
        try:
            if self.rejected is not None or self._keeps:
                self._progress.dead_letters.open(
                    self.rejected or beside_checkpoints(state, "rejected.jsonl", self.name)
                )
            self._assembler = BatchAssembler(self.source, self.prepare, self.collate)
            if self._like is not None:
                self._assembler.go_with(self._like)
            self.source.position = self._progress.position
            yield
        finally:
            self._under_way = False
            self._decisions.close()
            self.source.close()

    def on_pass(self, state: State) -> HookIterator:
        """Put the batches of this pass on the state."""
        if isinstance(self.pass_every, timedelta):
            self._decisions.begin_pass(self.pass_every)
        if self.group is None:
            state.batches = StreamBatches(self, state)
            yield
        else:
            state.batches = boundary = self.group.scattered(state, SharedStream(self, self.group))
            yield
            boundary.leave()
        if not state.pass_cut:
            self._progress.in_pass = 0
        if self._reads and not self._keeps:  # nothing resumes from what was saved
            self.source.commit(self._progress.position)

    @property
    def _reads(self) -> bool:
        """Whether this process reads the source."""
        return self.group is None or self.group.rank == 0

    def is_ready(self, timeout: float) -> bool:
        """Return whether a batch is ready, or the pass is over; wait for samples up to this many seconds."""
        if self.is_over():
            return True
        assembler, wanted = self._assembler, self._wanted()
        if assembler.good < wanted:
            assembler.more(wanted - assembler.good, min(timeout, self._patience()))
            if bad := self._decisions.passed_by(self._progress.batches, assembler.overdue, self.batch_size):
                self._progress.add(assembler.skip(bad))
        return assembler.good >= wanted or self._patience() == 0.0

    def is_over(self) -> bool:
        """Return whether the pass is over; once True, it stays so."""
        if isinstance(self.pass_every, timedelta):
            return self._decisions.ends_pass(self._progress.batches, begun=self._progress.in_pass > 0)
        return self._progress.in_pass >= self.pass_every

    def give(self) -> Any:
        """Return the next batch, once it is ready; None if its samples cannot be collated."""
        assembled = self.look()
        if assembled is None:
            return None
        self.take(assembled)
        return assembled.batch

    def look(self) -> AssembledBatch | None:
        """Return what the next batch would be, once it is ready; None if its samples cannot be collated."""
        return self._assembler.look(min(self._wanted(), self._assembler.good))

    def take(self, assembled: AssembledBatch) -> None:
        """Take a batch out of the stream, as the next one of the run."""
        wanted = self._wanted()
        self._assembler.remove(assembled)
        self._decisions.given(self._progress.batches, assembled.samples, wanted)
        self._progress.add(assembled)
        self._progress.batches += 1

    def _wanted(self) -> int:
        """Return the intended size of the next batch."""
        size = self._decisions.size(self._progress.batches)
        if size is not None:
            return size
        if isinstance(self.pass_every, timedelta):
            return self.batch_size
        return min(self.batch_size, self.pass_every - self._progress.in_pass)

    def _patience(self) -> float:
        """Return the seconds that the next batch still waits to be full; inf: until it has its samples."""
        if self._assembler.good == 0 or self._decisions.waits(self._progress.batches):
            return inf
        return max(0.0, self.max_wait - self._assembler.age)

    @property
    def place(self) -> str:
        """The position of the next sample, for messages."""
        progress = self._progress
        return f"{self.name}, batch {progress.batches} of the run, after {progress.position or 'the beginning'}"

    # -- log values and saving ----------------------------------------------------------------------------------------

    def on_checkpoints_pruned(self, steps: Sequence[int]) -> None:
        """Let the source remove what no checkpoint needs any more.

        Args:
            steps: of the checkpoints that the run may resume from. If the position of one is unknown, because it was
                written before the last start, nothing is removed yet.
        """
        if steps and all(step in self._places for step in steps):
            self.source.commit(self._places[min(steps)])
            self._places = {step: self._places[step] for step in steps}
            if not self._under_way:  # at the end of the run
                self.source.close()

    def identity(self) -> dict[str, Any]:
        """Return the kind of the source, which interprets the position. Sizes of batches and passes may change."""
        return {"source": type(self.source).__name__}

    def log_values(self) -> dict[str, float]:
        """Return how many samples were delivered and rejected, resumed runs included, and how many wait, if known."""
        waiting = self.waiting()
        queue = {} if waiting is None else {"queue": float(waiting)}
        return {"examples": self._progress.samples, "rejected": self._progress.dead_letters.count, **queue}

    @property
    def rejected_count(self) -> int:
        """Number of rejected samples, resumed runs included."""
        return self._progress.dead_letters.count

    def waiting(self) -> int | None:
        """Return how many samples wait; None: the source, or this process, does not know. Only for the run's thread."""
        waiting = self.source.waiting() if self._reads else None
        return None if waiting is None else waiting + self._assembler.good

    def told(self) -> list[Any]:
        """Return how far the stream has been read, for processes that do not read it."""
        progress = self._progress
        return [progress.position, progress.batches, progress.samples, progress.in_pass, progress.dead_letters.count]

    def take_over(self, told: Sequence[Any]) -> None:
        """Take over what the process that reads the stream has told."""
        progress = self._progress
        progress.position, progress.batches, progress.samples, progress.in_pass, progress.dead_letters.count = told

    def state_dict(self) -> dict[str, Any]:
        """Return the position behind the last batch, and the counts; the rejected samples so far are on disk."""
        saved = self._progress.state_dict()
        state = None if self._state is None else self._state()
        if state is not None:
            # If a step is saved twice, with samples skipped in between, only the first checkpoint is sure to exist.
            self._places.setdefault(state.step, self._progress.position)
        return {**saved, "step": -1 if state is None else state.step, "like": json.dumps(self._assembler.like)}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the position."""
        self._progress = StreamPosition.of(saved)
        self._places = {int(saved["step"]): self._progress.position}
        self._like = json.loads(saved["like"])


def _check_arguments(source: object, batch_size: object, max_wait: object, pass_every: object) -> None:
    if not callable(getattr(source, "read", None)) or not hasattr(source, "position"):
        raise CompositionError(f"StreamProvider: source must be a Source, such as Spool(path), got {source!r}.")
    if not (is_whole(batch_size) and batch_size >= 1):
        raise CompositionError(f"StreamProvider: batch_size must be an integer >= 1, got {batch_size!r}.")
    if not (is_number(max_wait) and max_wait >= 0):
        raise CompositionError(f"StreamProvider: max_wait must be a number of seconds >= 0, got {max_wait!r}.")
    if isinstance(pass_every, timedelta) and pass_every > timedelta(0):
        return
    if not (is_whole(pass_every) and pass_every >= 1):
        raise CompositionError(
            f"StreamProvider: pass_every must be a number of samples or a timedelta, > 0, got {pass_every!r}."
        )


def _journal_of(state: State) -> Journal | None:
    journals = [] if state.runner is None else state.runner.all(Journal)
    return journals[0] if journals else None
