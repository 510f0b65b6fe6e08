"""The ring that brings data while they arrive."""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from onion.checks import is_number, is_whole
from onion.data.batching import collate as stack
from onion.errors import CompositionError, HookError
from onion.item import RunnerItem, Way
from onion.items.data_provider import refuse_other_data
from onion.items.online.arrivals import Arrivals
from onion.items.online.gathering import Collate, Gathered, Gathering, Prepare
from onion.items.online.place import beside_checkpoints
from onion.items.online.record import Record
from onion.items.online.rejects import Rejects
from onion.items.online.rows import Row
from onion.items.online.source import Position, Source
from onion.items.saver import Saver
from onion.state import State

if TYPE_CHECKING:
    from onion.runner import Runner


class StreamProvider(RunnerItem):
    """Put batches of samples on the state as they arrive, from a source that never ends.

        spool = Spool("samples.db")
        Runner(Saver("run", every=500), Record(), StreamProvider(spool, batch_size=32, pass_every=10_000), ...).run()

    A batch is full, or as large as it got in ``max_wait`` seconds since its first sample came. A pass is a number of
    samples, or a time; so what acts at the ends of passes (Saver, Tester) works on a stream too.

    **Each sample goes into the weights exactly once.** The place in the source is saved in the checkpoint that has the
    weights: what was delivered and is not in it is delivered again after a crash, what is in it is not. The source may
    remove what all checkpoints have that the run may go on from.

    With a Record further out a run can be done again to the bit, though the sizes of batches, and the ends of passes
    that are a time, depend on when samples came. While nothing comes, a Mailbox or a Control further in is heard.

    Args:
        source: where samples come from: ``Spool``, ``RedisStream``, ``Folder``, or yours (``online.source.Source``).
        batch_size: samples a batch. Default 32.
        max_wait: seconds from a batch's first sample until it is given though it is not full. Default 1.
        pass_every: a number of samples, from 1, or a ``timedelta``. By time, a pass has a batch at least, and one that
            was cut and is resumed has its whole time once more.
        prepare: makes an example of a sample's data (JSON); what it raises is the reason why the sample is rejected.
            Default: the data are the example.
        collate: makes a batch of a list of examples. One that does not go with the others is rejected. Default: stack
            arrays and numbers field by field.
        rejected: the file for samples that cannot be used. Default: ``rejected.jsonl`` in the Saver's folder; without a
            Saver they are only counted.

    Raises:
        CompositionError: an argument is none of these, or another item brings data too.
        DataError: in the run: the source is broken, or lacks what has to come next.
        HookError: a run inside this one reads the stream too.
    """

    brings_data = True
    # Samples read ahead are read again; when the time of a pass is up is nothing that a resumed run repeats.
    unsaved = ("_gathering", "_places", "_pass_ends", "source", "_cut", "_skip", "_ended", "_state", "_like")

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
        _refuse_wrong(source, batch_size, max_wait, pass_every)
        self.source, self.batch_size, self.max_wait, self.pass_every = source, batch_size, max_wait, pass_every
        self.rejected = None if rejected is None else Path(rejected)
        self.prepare, self.collate = prepare, collate
        self._gathering = Gathering(source, prepare, collate)
        self._rejects = Rejects()
        self._places: dict[int, Position] = {}
        self._state: weakref.ref[State] | None = None
        self._record: Record | None = None
        self._pass_ends: float | None = None
        self._resumed = self._ended = self._keeps = self._under_way = False
        self._cut: int | None = None
        self._skip: int | None = None
        self._like: Any = None
        self._position: Position = ""
        self._batches = self._samples = self._in_pass = 0

    def check(self, runner: Runner) -> None:
        """Insist on being the only one to bring data, inside the Record."""
        refuse_other_data(self, runner)
        inside = runner.inside(self)
        for record in runner.all(Record):
            if any(record is item for item in inside):
                raise CompositionError(f"{record.name} stands inside {self.name}; move it further out (before it).")

    # -- running ------------------------------------------------------------------------------------------------------

    def initialize(self, state: State) -> Way:
        """Go on behind the last sample that is in the weights; let go of the source on the way out."""
        if self._under_way:
            raise HookError(
                f"{self.name} is read by the run around this one, and a sample is delivered once; give the inner run "
                "data of its own."
            )
        if not self._resumed:
            self._position, self._batches, self._samples, self._in_pass = "", 0, 0, 0
            self._rejects, self._places, self._like = Rejects(), {}, None
        self._resumed, self._cut, self._skip = False, None, None
        self._state, self._under_way = weakref.ref(state), True
        self._record = _the_record(state)
        self._keeps = bool(state.runner is not None and state.runner.all(Saver))
        try:
            if self.rejected is not None or self._keeps:
                self._rejects.open(self.rejected or beside_checkpoints(state, "rejected.jsonl", self.name))
            self._gathering = Gathering(self.source, self.prepare, self.collate)
            if self._like is not None:
                self._gathering.go_with(self._like)
            self.source.position = self._position
            yield
        finally:
            self._record, self._under_way = None, False
            self.source.close()

    def on_pass(self, state: State) -> Way:
        """Put the batches of this pass on the state."""
        self._ended = False
        if isinstance(self.pass_every, timedelta):
            self._pass_ends = monotonic() + self.pass_every.total_seconds()
        state.batches = Arrivals(self, state)
        yield
        if not state.pass_cut:
            self._in_pass = 0
        if not self._keeps:  # nothing goes on from what was saved
            self.source.commit(self._position)

    def is_ready(self, timeout: float) -> bool:
        """Tell whether a batch can be given, or the pass is over; wait for samples so many seconds at most."""
        if self.is_over():
            return True
        gathering, wanted = self._gathering, self._wanted()
        if gathering.good < wanted:
            late = gathering.good > 0 and not self._waits()
            patience = min(timeout, max(0.0, self.max_wait - gathering.age)) if late else timeout
            gathering.more(wanted - gathering.good, patience)
            self._pass_by()
        return gathering.good >= wanted or self._is_late()

    def _pass_by(self) -> None:
        """Be behind samples that were rejected, where many have come and no good one behind them."""
        if self._skip is None and (row := self._row("skipped")) is not None:
            self._skip = int(row["skipped"])
        overdue = self._gathering.overdue
        if self._skip is not None:
            if overdue >= self._skip:
                self._note(self._gathering.skip(self._skip))
                self._skip = None
        elif overdue >= self.batch_size and not self._follows():
            if self._record is not None:
                self._record.note({"batch": self._batches, "skipped": overdue})
            self._note(self._gathering.skip(overdue))

    def is_over(self) -> bool:
        """Tell whether the pass is over; once it has said so it is."""
        if isinstance(self.pass_every, timedelta):
            self._ended = self._ended or self._time_is_up()
            return self._ended
        return self._in_pass >= self.pass_every

    def _time_is_up(self) -> bool:
        if self._follows():
            return self._row("pass_end") is not None
        if self._in_pass == 0 or self._pass_ends is None or monotonic() < self._pass_ends:
            return False
        if self._record is not None:
            self._record.note({"batch": self._batches, "pass_end": True})
        return True

    def give(self) -> Any:
        """Return the next batch, once it is ready; None if its samples turned out not to go together."""
        wanted = self._wanted()
        gathered = self._gathering.take(min(wanted, self._gathering.good))
        if gathered is None:
            return None
        if gathered.samples < wanted and self._record is not None:
            self._record.note({"batch": self._batches, "samples": gathered.samples})
        self._cut = None
        self._note(gathered)
        self._batches += 1
        return gathered.batch

    def _wanted(self) -> int:
        """Return how many samples the next batch has, if they come in time."""
        if self._cut is None and (row := self._row("samples")) is not None:
            self._cut = int(row["samples"])
        if self._cut is not None:
            return self._cut
        left = self.batch_size if isinstance(self.pass_every, timedelta) else self.pass_every - self._in_pass
        return min(self.batch_size, left)

    def _is_late(self) -> bool:
        """Tell whether the batch is given as it is. One that follows a record has the samples that it had before."""
        return not self._waits() and self._gathering.good > 0 and self._gathering.age >= self.max_wait

    def _waits(self) -> bool:
        """Tell whether the batch waits for its samples however late they are: it had them before."""
        return self._cut is not None or self._follows()

    def _follows(self) -> bool:
        return self._record is not None and self._record.follows(self._batches)

    def _row(self, kind: str) -> Row | None:
        return None if self._record is None else self._record.due(self._batches, kind)

    def _note(self, gathered: Gathered) -> None:
        """Be behind what was taken."""
        self._position = gathered.position
        self._samples += gathered.samples
        self._in_pass += gathered.samples
        self._rejects.add(gathered.rejected)

    @property
    def place(self) -> str:
        """Where the next sample is, for a person to read."""
        return f"{self.name}, batch {self._batches} of the run, behind {self._position or 'the beginning'}"

    # -- telling and saving -------------------------------------------------------------------------------------------

    def checkpoints_kept(self, steps: Sequence[int]) -> None:
        """Let the source remove what no checkpoint asks for again.

        Args:
            steps: of the checkpoints that the run may go on from. Where one is from before the last start, and so its
                place not known, nothing is removed yet.
        """
        if steps and all(step in self._places for step in steps):
            self.source.commit(self._places[min(steps)])
            self._places = {step: self._places[step] for step in steps}
            if not self._under_way:  # at the end of the run
                self.source.close()

    def identity(self) -> dict[str, Any]:
        """Return the kind of the source: a place is one of its own. Sizes of batches and passes may change."""
        return {"source": type(self.source).__name__}

    def readings(self) -> dict[str, float]:
        """Return samples handed out and rejected, resumed runs included, and how many wait, where that is known."""
        waiting = self.waiting()
        queue = {} if waiting is None else {"queue": float(waiting)}
        return {"examples": self._samples, "rejected": self._rejects.count, **queue}

    @property
    def rejected_count(self) -> int:
        """How many samples were rejected, resumed runs included."""
        return self._rejects.count

    def waiting(self) -> int | None:
        """Return how many samples wait to be handed out; None: the source does not know. For the run's thread."""
        waiting = self.source.waiting()
        return None if waiting is None else waiting + self._gathering.good

    def state_dict(self) -> dict[str, Any]:
        """Return the place behind the last batch, and the counts; what was rejected so far is on the disk."""
        self._rejects.settle()
        state = None if self._state is None else self._state()
        if state is not None:
            # Where a step is saved twice, with samples passed by in between, only the first is known to be there.
            self._places.setdefault(state.step, self._position)
        return {
            "position": self._position,
            "batches": self._batches,
            "samples": self._samples,
            "in_pass": self._in_pass,
            "rejected": self._rejects.count,
            "rejected_bytes": self._rejects.offset,
            "step": -1 if state is None else state.step,
            "like": json.dumps(self._gathering.like),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on at that place."""
        self._position, self._batches = str(saved["position"]), int(saved["batches"])
        self._samples, self._in_pass = int(saved["samples"]), int(saved["in_pass"])
        self._rejects = Rejects()
        self._rejects.count, self._rejects.offset = int(saved["rejected"]), int(saved["rejected_bytes"])
        self._places = {int(saved["step"]): self._position}
        self._like = json.loads(saved["like"])
        self._resumed = True


def _refuse_wrong(source: object, batch_size: object, max_wait: object, pass_every: object) -> None:
    if not callable(getattr(source, "read", None)) or not hasattr(source, "position"):
        raise CompositionError(f"StreamProvider reads a Source, such as Spool(path), and not {source!r}.")
    if not (is_whole(batch_size) and batch_size >= 1):
        raise CompositionError(f"StreamProvider: batch_size={batch_size!r} is no number of samples from 1.")
    if not (is_number(max_wait) and max_wait >= 0):
        raise CompositionError(f"StreamProvider: max_wait={max_wait!r} is no number of seconds from 0.")
    if isinstance(pass_every, timedelta) and pass_every > timedelta(0):
        return
    if not (is_whole(pass_every) and pass_every >= 1):
        raise CompositionError(
            f"StreamProvider: pass_every={pass_every!r} is neither a number of samples nor a timedelta, both above 0."
        )


def _the_record(state: State) -> Record | None:
    records = [] if state.runner is None else state.runner.all(Record)
    return records[0] if records else None
