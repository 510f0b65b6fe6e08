"""Periodic checkpoints of everything inside, and resuming from them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from operator import length_hint
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from onion.checkpointing import checkpoint, rng
from onion.checkpointing.run_state import manual_settings, outermost, put_back, stateful, take, tell_of_checkpoints
from onion.checkpointing.shared import newest_of_first, written_for_all
from onion.checkpointing.writer import CheckpointWriter, NoWriter, OnError, quietly
from onion.engine.identity import Identity, identity_of
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.periodic import Interval, Periodic
from onion.engine.state import State
from onion.errors import CheckpointError, CompositionError
from onion.items.tester import Tester
from onion.monitoring.best import Best, Mode
from onion.paths import anchored, shortened

if TYPE_CHECKING:
    from onion.engine.runner import Runner

log = logging.getLogger("onion")


class Saver(Periodic):
    """Save the run every so often and at its end; go on from the newest checkpoint when it starts again.

    It goes outside everything that has a state to save. A checkpoint holds every item's ``state_dict``, the counters,
    the metrics, all random generators and what the onion is made of (format: ``onion/checkpointing/checkpoint.py``).
    Where the data cannot give the next batch of a pass, the run is saved as the last one left it, before the error goes
    on. No second run gets into the folder. A KeyboardInterrupt without Signals leaves at once: what is whole stays
    whole, and the next run in this process waits for what a thread is still writing.

    Args:
        folder: where the checkpoints go; made if it is missing. A relative one is seen from where the Saver is made.
        every: steps between two checkpoints, a ``timedelta``, or ``"pass"``. Default ``"pass"``.
        keep_last: how many of the newest are kept, the best besides. Default 2.
        monitor: also save whenever this metric is better than ever, and keep that checkpoint. Default: none.
        mode: whether more (``max``, default) or less (``min``) is better.
        resume: go on from the newest whole checkpoint in the folder if there is one (True, default), require a folder
            without one (False), or go on even where that is another onion's or of other data (``"force"``): what
            differs is logged, and with other data the pass under way starts over.
        extends: go on also with more tasks than the saved run has, as continual pretraining does: with more stages of
            ``onion.multitask.stages.Stages`` and tests of the new tasks. All that was saved goes on as it was; new
            heads begin with the weights that they were built with. Default False.
        async_save: write in a thread; the loop then waits only until all arrays are copied, which takes their memory
            once more, and for the checkpoint before, if that is still being written. Default False.
        on_error: where a checkpoint cannot be written, end the run with the error (``"raise"``, default), or log a
            warning, continue, and try again when the next one is due (``"warn"``); the last one of the run is never
            skipped.

    Raises:
        CheckpointError: a checkpoint cannot be written or read, or is of another run; ``resume=False`` and the folder
            holds a run; or another run writes into the folder.
        CompositionError: an argument is none of these, or it is inside something that it has to save.
    """

    passive = outermost_only = True
    # What this process has loaded and written; a run that was just resumed has more of the one and less of the other.
    transient = ("_writer", "_saved_settings", "_generators", "_finished", "_onions")

    def __init__(
        self,
        folder: str | Path,
        every: Interval = "pass",
        *,
        keep_last: int = 2,
        monitor: str | None = None,
        mode: Mode = "max",
        resume: bool | Literal["force"] = True,
        extends: bool = False,
        async_save: bool = False,
        on_error: OnError = "raise",
    ) -> None:
        super().__init__(every)
        if keep_last < 1:
            raise CompositionError(f"Saver: keep_last must be >= 1, got {keep_last}.")
        if resume not in (True, False, "force"):
            raise CompositionError(f"Saver: resume must be True, False or 'force', got {resume!r}.")
        if extends and resume is not True:
            raise CompositionError(f"Saver: extends=True goes on with a saved run; leave resume={resume!r} out.")
        if on_error not in ("raise", "warn"):
            raise CompositionError(f"Saver: on_error must be 'raise' or 'warn', got {on_error!r}.")
        self.folder, self.keep_last, self.resume, self.extends = anchored(folder), keep_last, resume, extends
        self.monitor, self.mode = monitor, mode
        self.async_save, self.on_error = async_save, on_error
        self._best = Best(monitor or "", mode)
        self._writer: CheckpointWriter | NoWriter = CheckpointWriter(self.folder, keep_last, async_save, on_error)
        self._onion: Identity = {}
        # What an onion was made of when it first ran: items may change their arguments as they run.
        self._onions: WeakKeyDictionary[RunnerItem, Identity] = WeakKeyDictionary()
        self.reset()

    def reset(self) -> None:
        """Begin with nothing loaded and nothing written."""
        super().reset()
        self._writer.finish()  # what a run that was interrupted left under way
        self._writer = CheckpointWriter(self.folder, self.keep_last, self.async_save, self.on_error)
        self._saved_settings: list[Mapping[str, float]] = []
        self._due_at_end = self._asked = self._changed = self._failed = False
        self._finished = 0
        self._generators: Mapping[str, Any] | None = None

    def check(self, runner: Runner) -> None:
        """Require a place outside everything that has a state to save."""
        super().check(runner)
        inside = runner.inside(self)
        outside = [item for item in stateful(runner) if item is not self and item not in inside]
        if outside:
            names = ", ".join(item.name for item in outside)
            raise CompositionError(f"{self.name} is inside {names}, which it has to save; move it further out.")
        for item in stateful(runner):
            if "/" in item.name or "\\" in item.name:
                raise CompositionError(
                    f"{item.name!r} cannot be a file name, which {self.name} needs; remove the slash."
                )
        late = [tester.name for tester in runner.all(Tester) if not any(tester is item for item in inside)]
        if late:
            raise CompositionError(f"{late[0]} is outside {self.name}, which would save before it; move it further in.")

    def initialize(self, state: State) -> HookIterator:
        """Load the newest checkpoint on the way in, save the end on the way out."""
        assert state.runner is not None
        if state.runner not in self._onions:
            self._onions[state.runner] = identity_of(state.runner)
        self._onion = self._onions[state.runner]
        if self.group is not None and self.group.rank > 0:
            self._writer = NoWriter()
        with self._writer.at_work_for(outermost(state)):
            self._load(state)
            yield
            self._writer.wait()
            if self._failed:  # the error of a pass was caught; its place is lost
                return
            self._writer.on_error = "raise"
            if self.group is not None and state.parent is None:
                self.group.leave(state)
            if self._agreed(self._asked or self._changed or not self._saved(state)):
                self._save(state, state.pass_id, state.batch_id)
            self._writer.wait()
            self._tell(state)
            self._best.tell_if_undecided(state, self.name)

    def on_pass(self, state: State) -> HookIterator:
        """Save at the end of the pass if that is the period, its last batch was due, or the metric was best."""
        self._put_generators_back(state)
        self._finished, self._failed = 0, False
        try:
            yield
        except BaseException as error:
            self._failed = True
            self._rescue(state, error)
            raise
        if state.pass_cut:
            return
        if self.monitor is not None:
            self._best.tell_if_missing(state, self.name)
        due = self.every == "pass" or self._due_at_end or self._asked
        if self._agreed(self._improved(state) or due or self._writer.newest == state.step):
            self._save(state, state.pass_id + 1, 0)

    def on_batch(self, state: State) -> HookIterator:
        """Save after the batch if it completes a period, or if the metric was better than ever."""
        self._finished = 0
        yield
        self._writer.look()
        self._tell(state)
        if self._improved(state) or self.due(state) or self._asked:
            # After the last batch, items may still act on the way out of the pass; what they do is to be saved too.
            self._due_at_end = length_hint(state.batches, 1) == 0
            if not self._due_at_end:
                self._save(state, state.pass_id, state.batch_id + 1)
        self._finished = state.batch_id + 1

    def _rescue(self, state: State, error: BaseException) -> None:
        """Save what the last batch left, if it was the data that failed to give the next one."""
        between_batches = 0 < state.batch_id == self._finished  # the Runner has counted that which this ring has left
        if error is state.data_error and between_batches and self._agreed(state.step != self._writer.newest):
            with quietly():
                self._save(state, state.pass_id, state.batch_id)

    def save(self, state: State) -> bool:
        """Save between two batches, as a letter of a Mailbox does: ``mailbox.post(saver.save)``.

        What other letters have changed since the newest checkpoint is in it, also if that is of the same step, which it
        takes the place of.

        Of several processes all ranks save; an error of rank 0, which writes, is raised on all.

        Returns:
            Whether the checkpoint is there. False: before the first batch of a pass, or after its last, items have
            done things in the pass that is not over or has only begun; the next batch, or the pass, is finished first.
        """
        self._asked = True
        if state.batch_id > 0 and length_hint(state.batches, 1) > 0:
            with nullcontext() if self.group is None else written_for_all(self.group):
                self._save(state, state.pass_id, state.batch_id)
                self._writer.wait()
        return not self._asked and self._writer.newest == state.step

    def wait(self) -> None:
        """Wait until no checkpoint is being written.

        Raises:
            CheckpointError: the last one could not be written.
        """
        self._writer.wait()

    def note_change(self) -> None:
        """Save the end of the run also if no step was made since the newest checkpoint: something else has changed."""
        self._changed = True

    def _put_generators_back(self, state: State) -> None:
        """Put the generators back where a resumed pass begins, and in mid-pass again before its first batch is drawn.

        There the items further in had drawn on their way into the pass before the checkpoint, and now do so once more.
        """
        if self._generators is not None:
            back = partial(rng.restore, self._generators)
            back()
            state.before_batches = back if state.batch_id > 0 else None
            self._generators = None

    def _improved(self, state: State) -> bool:
        return self.monitor is not None and self._best.fresh(state) and self._best.better(state)

    def _saved(self, state: State) -> bool:
        return state.step == self._writer.newest and manual_settings(state) == self._saved_settings

    def _agreed(self, due: bool) -> bool:
        """Return what the first of several ranks finds due, which alone knows what could be written."""
        if self.group is None:
            return due
        return bool(self.group.everyone({"at": {"place": "whether to save"}, "due": due})[0]["due"])

    def _save(self, state: State, pass_id: int, batch_id: int) -> None:
        self._writer.wait()
        # On all ranks, since each may have a part of a state, which the first gathers there.
        taken = take(state, pass_id, batch_id, self._onion, None if self._best.value is None else self._best.step)
        self._note_saved(state)
        self._writer.write(taken)
        if not self.async_save:
            self._tell(state)

    def _note_saved(self, state: State) -> None:
        self._saved_settings = manual_settings(state)
        self._due_at_end = self._asked = self._changed = False
        self._writer.newest = state.step

    def _tell(self, state: State) -> None:
        if kept := self._writer.news():
            tell_of_checkpoints(state, kept)

    def _load(self, state: State) -> None:
        saved = checkpoint.newest(self.folder) if self.group is None else newest_of_first(self.group, self.folder)
        if saved is None:
            return
        if not self.resume:
            raise CheckpointError(f"{self.folder} holds another run (step {saved.step}); choose an empty folder.")
        put_back(state, saved, self._onion, self.folder, anyway=self.resume == "force", extends=self.extends)
        self._saved_settings, self._generators = manual_settings(state), saved.run["generators"]
        self._writer.go_on_from(saved)
        ended = "; it has all that is asked for, so nothing is trained" if _is_complete(state) else ""
        log.info("resumed from step %d in %s%s", saved.step, shortened(self.folder), ended)

    def state_dict(self) -> dict[str, Any]:
        """Return the best value and its step."""
        return self._best.state_dict()

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore them."""
        self._best.load_state_dict(saved)


def _is_complete(state: State) -> bool:
    """Tell whether a run that was resumed has made the passes or steps already that are asked for."""
    passes = state.passes_asked is not None and state.pass_id >= state.passes_asked
    return passes or (state.steps_asked is not None and state.step >= state.steps_asked)
