"""Checkpoints of everything inside, every so often, and the way back from them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from operator import length_hint
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onion import checkpoint, generators
from onion.errors import CheckpointError, CompositionError
from onion.item import RunnerItem, Way, overrides
from onion.items.best import Best, Mode
from onion.items.parameter_updater import ParameterUpdater
from onion.items.periodic import Every, Periodic
from onion.state import State

if TYPE_CHECKING:
    from onion.runner import Runner

log = logging.getLogger("onion")


class Saver(Periodic):
    """Save the run every so often and at its end; go on from the newest checkpoint when it starts again.

    It stands outside everything that has a state to save. A checkpoint holds every item's ``state_dict``, the counters,
    the metrics and all random generators (format: ``onion/checkpoint.py``).

    Args:
        folder: where the checkpoints go; made if it is missing.
        every: steps between two checkpoints, a ``timedelta``, or ``"pass"``. Default ``"pass"``.
        keep: how many of the newest are kept, the best besides. Default 2.
        best: also save whenever this metric is better than ever, and keep that checkpoint. Default: none.
        mode: whether more (``max``, default) or less (``min``) is better.
        resume: go on from the newest whole checkpoint in the folder if there is one. Default True.

    Raises:
        CheckpointError: a checkpoint cannot be written or read, does not fit the onion, or ``resume=False`` and the
            folder holds a run.
    """

    def __init__(
        self,
        folder: str | Path,
        every: Every = "pass",
        *,
        keep: int = 2,
        best: str | None = None,
        mode: Mode = "max",
        resume: bool = True,
    ) -> None:
        super().__init__(every)
        if keep < 1:
            raise CompositionError(f"Saver: keep={keep} would keep no checkpoint; it is at least 1.")
        self.folder, self.keep, self.best, self.mode, self.resume = Path(folder), keep, best, mode, resume
        self._best = Best(best or "", mode)
        self._saved_step = -1
        self._saved_rates: list[float | None] = []
        self._due_at_end = False
        self._asked = False
        self._generators: Mapping[str, Any] | None = None

    def check(self, runner: Runner) -> None:
        """Insist on standing outside everything that has a state to save."""
        super().check(runner)
        inside = runner.inside(self)
        outside = [item for item in stateful(runner) if item is not self and item not in inside]
        if outside:
            names = ", ".join(item.name for item in outside)
            raise CompositionError(f"{self.name} stands inside {names}, which it has to save; move it further out.")
        for item in stateful(runner):
            if "/" in item.name:
                raise CompositionError(f"{item.name!r} cannot be a file's name, as {self.name} needs; drop the '/'.")

    def initialize(self, state: State) -> Way:
        """Load the newest checkpoint on the way in, save the end on the way out."""
        self._saved_step, self._due_at_end, self._asked, self._generators = -1, False, False, None
        checkpoint.make(self.folder)
        self._load(state)
        yield
        if self._asked or state.step != self._saved_step or _rates(state) != self._saved_rates:
            self._save(state, state.pass_id, state.batch_id)

    def on_pass(self, state: State) -> Way:
        """Save at the end of the pass if that is the period, its last batch was due, or the metric was best."""
        self._restore_generators(again=state.batch_id > 0)
        yield
        self._generators = None
        if state.pass_cut:
            return
        due = self.every == "pass" or self._due_at_end or self._asked
        if self._improved(state) or due or self._saved_step == state.step:
            self._save(state, state.pass_id + 1, 0)

    def on_batch(self, state: State) -> Way:
        """Save after the batch if it completes a period, or if the metric was better than ever."""
        if self._generators is not None:
            self._restore_generators()
        yield
        if self._improved(state) or self.due(state) or self._asked:
            # After the last batch, items may still act on the way out of the pass; what they do is to be saved too.
            self._due_at_end = length_hint(state.batches, 1) == 0
            if not self._due_at_end:
                self._save(state, state.pass_id, state.batch_id + 1)

    def save(self, state: State) -> bool:
        """Save between two batches, as a letter of a Mailbox does: ``mailbox.post(saver.save)``.

        What other letters have changed since the newest checkpoint is in it, also if that is of the same step, which it
        takes the place of.

        Returns:
            Whether the checkpoint is there. False: before the first batch of a pass, or after its last, items have
            done things in the pass that is not over or has only begun; the next batch, or the pass, is finished first.
        """
        self._asked = True
        if state.batch_id > 0 and length_hint(state.batches, 1) > 0:
            self._save(state, state.pass_id, state.batch_id)
        return not self._asked

    def _restore_generators(self, again: bool = False) -> None:
        """Put the generators back where the resumed pass begins, and again at its first batch if that is in mid-pass.

        There the items further in had drawn on their way into the pass before the checkpoint, and now do so once more.
        """
        if self._generators is not None:
            generators.restore(self._generators)
        if not again:
            self._generators = None

    def _improved(self, state: State) -> bool:
        return self.best is not None and self._best.fresh(state) and self._best.better(state)

    def _save(self, state: State, pass_id: int, batch_id: int) -> None:
        counters = {"pass_id": pass_id, "batch_id": batch_id, "step": state.step}
        run = {
            "counters": counters,
            "cost": None if state.cost is None else float(state.cost),
            "metrics": state.metrics,
            "reported": state.reported,
            "best_step": None if self._best.value is None else self._best.step,
            "generators": generators.capture(),
        }
        items = {item.name: item.state_dict() for item in _saved_items(state)}
        checkpoint.write(self.folder, checkpoint.Checkpoint(state.step, run, items))
        self._saved_step, self._saved_rates = state.step, _rates(state)
        self._due_at_end = self._asked = False
        self._prune(state.step)

    def _prune(self, now: int) -> None:
        """Remove old checkpoints. Later ones than now's were passed over when this run began, and do not count."""
        steps = checkpoint.steps_in(self.folder)
        keep = {step for step in steps if step > now}.union([step for step in steps if step <= now][-self.keep :])
        if self._best.value is not None:
            keep.add(self._best.step)
        checkpoint.prune(self.folder, keep)

    def _load(self, state: State) -> None:
        saved = checkpoint.newest(self.folder)
        if saved is None:
            return
        if not self.resume:
            raise CheckpointError(f"{self.folder} holds another run (step {saved.step}); choose an empty folder.")
        items = {item.name: item for item in _saved_items(state)}
        if items.keys() != saved.items.keys():
            raise CheckpointError(
                f"{self.folder} holds the run of another onion: it saved {sorted(saved.items)}, "
                f"this one has {sorted(items)}; choose an empty folder."
            )
        for name, item in items.items():
            item.load_state_dict(saved.items[name])
        state.pass_id, state.batch_id = saved.run["counters"]["pass_id"], saved.run["counters"]["batch_id"]
        state.step = self._saved_step = saved.step
        self._saved_rates = _rates(state)
        state.cost = saved.run["cost"]
        state.metrics.update(saved.run["metrics"])
        state.reported.update(saved.run["reported"])
        self._generators = saved.run["generators"]
        log.info("resumed from step %d in %s", saved.step, self.folder)

    def state_dict(self) -> dict[str, Any]:
        """Return the best value and its step."""
        return self._best.state_dict()

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Take them back."""
        self._best.load_state_dict(saved)


def stateful(runner: Runner) -> list[RunnerItem]:
    """Return the items of a runner that have a state to save."""
    return [item for item in runner.walk() if overrides(item, "state_dict")]


def _saved_items(state: State) -> list[RunnerItem]:
    return [] if state.runner is None else stateful(state.runner)


def _rates(state: State) -> list[float | None]:
    """Return the learning rates that were set by hand: they may change between two steps."""
    return [] if state.runner is None else [updater.rate for updater in state.runner.all(ParameterUpdater)]


def best_checkpoint(folder: Path) -> checkpoint.Checkpoint:
    """Return the best checkpoint that a Saver kept in a folder; the newest if it looked for no best.

    Raises:
        CheckpointError: there is none.
    """
    newest = checkpoint.newest(folder)
    if newest is None:
        raise CheckpointError(f"{folder} holds no checkpoint; train first.")
    best = newest.run["best_step"]
    return newest if best in (None, newest.step) else checkpoint.read(checkpoint.folder_of(folder, best))
