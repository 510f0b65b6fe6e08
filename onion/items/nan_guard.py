"""What happens when a loss is not a number."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from onion.device import paddle
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError, DivergedError
from onion.items.parameter_updater import NO_PARAMETERS
from onion.training import rate_schedule
from onion.training.microbatches import GradientRollback, check_inside_updater, refuse_sharers_around, updaters_around
from onion.training.pairing import machines_inside
from onion.validation import is_whole

if TYPE_CHECKING:
    from onion.engine.runner import Runner

Policy: TypeAlias = Literal["raise", "skip", "rollback"]

log = logging.getLogger("onion")


class NanGuard(RunnerItem):
    """Look at the loss between the gradients and the update; let no update be made of NaN or infinity.

        Runner(data, ParameterUpdater(optimizer), NanGuard("rollback"), GradientMachine(network))

    ``skip`` throws the gradients away and puts running means back, so that the updater has nothing to move and the
    network and the optimizer stay to the bit as they were. ``rollback`` goes further back, to a copy of both that is
    kept in memory: a new one every ``snapshot_every`` steps, taken when the loss was a number and before the update.
    The data go on, and so do ``state.step`` and the learning rate schedule, which follows it: they count batches that
    were run. A learning rate that was set with ``set_learning_rate`` stays. ``state.loss`` stays what it was, for a log
    to show. A batch without a loss is not looked at.

    ``state.loss`` is that of the last gradient machine. Where several are inside, or one that runs again (Repeat), the
    gradients are looked at too, whatever ``check_gradients`` is.

    It goes outside of MixedPrecision, which clears what overflowed by itself.

    It reads the loss in every batch, which waits for the device: on a GPU that takes away the overlap of two batches.
    Once weights are not finite every later loss is not, so ``raise`` may look now and then, where a loss is logged too.

    Args:
        policy: ``raise`` (default) ends the run with an error, ``skip`` skips the update, ``rollback`` goes back.
        check_gradients: also look whether all gradients are finite; it costs a pass over them. Default False.
        snapshot_every: steps between two copies of ``rollback``, which take the memory of the network and its optimizer
            once more, also in a checkpoint. Default 100.
        check_every: steps between two looks; more than 1 with ``raise`` only. Default 1.

    Raises:
        CompositionError: an argument is none of these, or its place is not between a ParameterUpdater and all
            its gradient machines, outside what makes one update of several batches.
        DivergedError: with ``raise``: the loss is not finite; the message tells the step and the loss.
    """

    keep_for_inference = False
    transient = ("_kept",)  # compared by state_dict; here a loaded copy has no entry for an optimizer without a state

    def __init__(
        self,
        policy: Policy = "raise",
        *,
        check_gradients: bool = False,
        snapshot_every: int = 100,
        check_every: int = 1,
    ) -> None:
        if policy not in get_args(Policy):
            raise CompositionError(f"NanGuard: policy must be one of {', '.join(get_args(Policy))}; got {policy!r}.")
        if not (is_whole(snapshot_every) and snapshot_every >= 1):
            raise CompositionError(f"NanGuard: snapshot_every must be an integer >= 1, got {snapshot_every!r}.")
        if not (is_whole(check_every) and check_every >= 1 and (check_every == 1 or policy == "raise")):
            raise CompositionError(
                f"NanGuard: check_every must be an integer >= 1, and 1 for policy {policy}; got {check_every!r}."
            )
        self.policy, self.check_gradients = policy, check_gradients
        self.snapshot_every, self.check_every = snapshot_every, check_every
        self.reset()

    def reset(self) -> None:
        """Count from 0, without a copy, and guard nothing yet."""
        self._guarded: list[RunnerItem] = []
        self._networks: list[Any] = []
        self._several_losses = False
        self._seen = 0
        self._kept: dict[str, dict[str, Any]] = {}
        self._kept_step: int | None = None

    def check(self, runner: Runner) -> None:
        """Check the place, and that there are networks to guard."""
        check_inside_updater(self, runner)
        refuse_sharers_around(self, runner, "and would judge a part of an update; move it outside.")
        for machine in machines_inside(self, runner):
            if machine.network is None:
                raise CompositionError(
                    f"{self.name} finds no network in {machine.name}; give it the attribute network."
                )

    def initialize(self, state: State) -> None:
        """Find what is guarded in the onion that runs."""
        self._guarded, self._networks = self._found(state.runner)
        self._several_losses = state.runner is not None and self._hides_losses(state.runner)

    def _found(self, runner: Runner | None) -> tuple[list[RunnerItem], list[Any]]:
        """Return the machines inside with the updaters around, and the machines' networks."""
        if runner is None:
            return [], []
        machines = machines_inside(self, runner)
        return [*machines, *updaters_around(self, runner)], [machine.network for machine in machines]

    def _hides_losses(self, runner: Runner) -> bool:
        """Tell whether ``state.loss`` is that of one gradient machine of several, or of one time of several."""
        again = any(each.runs_again and not each.splits_update for each in runner.inside(self))
        return again or len(machines_inside(self, runner)) > 1

    def on_batch(self, state: State) -> HookIterator:
        """Run the inside, look, and act."""
        before, state.loss = state.loss, None
        attempts = [GradientRollback(network) for network in self._networks if self.policy != "raise"]
        yield
        wrong = self._wrong(state)
        if wrong is not None:
            self._act(f"{self.name}: {_where(state)} {wrong}", attempts)
            return
        for attempt in attempts:
            attempt.keep()
        if state.loss is None:
            state.loss = before
        elif self.policy == "rollback" and self._due(state):
            self._keep(state.next_step)

    def _act(self, said: str, attempts: list[GradientRollback]) -> None:
        """Do what the policy says about a batch that is not finite."""
        self._seen += 1
        if self.policy == "raise":
            raise DivergedError(f"{said}; a smaller learning rate, warm-up or clipping may help.")
        for attempt in attempts:
            attempt.take_back()
        if self._kept_step is None:
            log.warning("%s; skipped the update", said)
        else:
            self._go_back()
            log.warning("%s; rolled back to before step %d", said, self._kept_step)

    def _wrong(self, state: State) -> str | None:
        """Describe what is not finite; None: everything is finite."""
        if state.loss is None:  # nothing was run, as where an item inside skips the batch
            return None
        if state.next_step % self.check_every:
            return None
        loss = float(state.loss)
        if not math.isfinite(loss):
            return f"has the loss {loss}"
        if (self.check_gradients or self._several_losses) and not all(_finite(network) for network in self._networks):
            return f"has gradients that are not finite, at the loss {loss:g}"
        return None

    def _due(self, state: State) -> bool:
        return self._kept_step is None or state.next_step - self._kept_step >= self.snapshot_every

    def _keep(self, step: int) -> None:
        """Copy the network and the optimizer as they are before the update of a step."""
        self._kept = {item.name: _copied(item.state_dict()) for item in self._guarded}
        self._kept_step = step

    def _go_back(self) -> None:
        for item in self._guarded:
            kept = self._kept.get(item.name, {})  # a loaded copy has no entry for an optimizer without a state
            now = item.state_dict()
            if item.optimizer is not None:
                _empty(item.optimizer)
            item.load_state_dict({**kept, **{key: now[key] for key in rate_schedule.KEYS if key in now}})

    def log_values(self) -> dict[str, float]:
        """Return the number of batches that were not finite, resumed runs included."""
        return {"not_finite": self._seen}

    def state_dict(self) -> dict[str, Any]:
        """Return the count, and the copy that ``rollback`` goes back to."""
        copies = {f"{name}/{key}": value for name, kept in self._kept.items() for key, value in kept.items()}
        return {"not_finite": self._seen, "kept_step": self._kept_step, **copies}

    def extended(self, saved: Mapping[str, Any], tasks: Sequence[str]) -> dict[str, Any]:
        """Leave out the copy, which lacks the heads of new tasks; the next batch makes another one."""
        return {"not_finite": saved["not_finite"], "kept_step": None}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore them."""
        self._seen = int(saved["not_finite"])
        self._kept_step = None if saved["kept_step"] is None else int(saved["kept_step"])
        self._kept = {}
        for key, value in saved.items():
            name, slash, own = key.partition("/")
            if slash:
                self._kept.setdefault(name, {})[own] = value


def _where(state: State) -> str:
    """Name the batch under way: its step, and its task if it has one."""
    return f"step {state.next_step}" + ("" if state.task is None else f" (task {state.task})")


def _finite(network: Any) -> bool:
    """Tell whether all gradients of a network are finite."""
    framework = paddle()
    finite = [framework.isfinite(each.grad).all() for each in network.parameters() if each.grad is not None]
    return not finite or bool(framework.stack(finite).all())


def _copied(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the arrays of a state; the learning rate and its schedule are left out, for they go on."""
    arrays = {key: value for key, value in saved.items() if key not in NO_PARAMETERS}
    return {key: value.detach().clone() if hasattr(value, "detach") else value for key, value in arrays.items()}


def _empty(optimizer: Any) -> None:
    """Make an optimizer as it was before its first step, so that it takes back a state that had less in it."""
    optimizer._accumulators.clear()
    # Paddle 2.6 spells it otherwise.
    made = "_already_create_accumulator"
    getattr(optimizer, made if hasattr(optimizer, made) else "_already_create_accumulater").clear()
    optimizer._master_weights = {}
