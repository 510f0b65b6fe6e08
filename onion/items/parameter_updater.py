"""The ring that moves the parameters once the rings inside have made gradients."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import ref

from onion.device import paddle
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CheckpointError, CompositionError, HookError, OnionError
from onion.items.gradient_machine import array_kind
from onion.training import rate_schedule, task_rates
from onion.training.adjustable import Adjustable
from onion.training.pairing import machines_inside, networks_of, parameters_of, refuse_idle, refuse_unmoved
from onion.training.updates import updates_in
from onion.validation import is_number, wants_arguments

if TYPE_CHECKING:
    from onion.distributed.sharding import Shard
    from onion.engine.runner import Runner

MASTER, RATE, NORM = "master_weight", "learning_rate", "gradient_norm"
NO_PARAMETERS = {*rate_schedule.KEYS, RATE, NORM}
"""What is saved beside the states of parameters."""


class ParameterUpdater(RunnerItem):
    """On the way out: step the optimizer, clear the gradients, step its learning rate schedule.

    Args:
        optimizer: any ``paddle.optimizer``; its clipping, weight decay and learning rate schedule are used as they are.
            A schedule is stepped once an update; one over ``onion.schedules.Passes`` is planned when the run begins,
            for as many updates as the onion makes; one ``by_task`` counts the updates of each task.

    Raises:
        CompositionError: the optimizer wraps another one (``paddle.incubate.LookAhead``), whose state would not be
            saved; its ``step`` wants a closure (LBFGS), or its schedule's a metric (ReduceOnPlateau), which a batch has
            not; nothing inside makes gradients; the optimizer has no parameters, or none of a network inside; or a
            network inside learns, and no updater around it moves any of it; or, when the run begins, the learning rate
            is planned in passes and the data do not tell how many batches a pass has.
    """

    keep_for_inference = False
    moves_weights = True

    def __init__(self, optimizer: Any) -> None:
        _refuse_wrapper(optimizer)
        _refuse_closure(optimizer)
        self.optimizer = optimizer
        self._schedule = rate_schedule.of(optimizer)
        self._settings = _settings_of(optimizer)
        self.rate: float | None = None
        """The learning rate that was set during a run, or None."""
        self._shard: Shard | None = None
        self._onions: tuple[ref[Runner], ...] = ()
        self._networks: list[tuple[str, Any]] = []

    def check(self, runner: Runner) -> None:
        """Require something inside that makes gradients, and an updater for every parameter that learns.

        A gradient machine of your own subclasses GradientMachine or has the class attribute ``computes_gradients =
        True``.
        """
        machines = machines_inside(self, runner)
        if not machines:
            raise CompositionError(
                f"{self.name} has no gradient machine inside it; add a GradientMachine further in (after it)."
            )
        refuse_idle(self, machines)
        task_rates.refuse_groups(self._schedule, self, runner)
        if any(item.provides_data for item in runner.walk()):  # else it is a part of an onion
            for machine in machines:
                refuse_unmoved(machine, runner)
        self._onions = (*(onion for onion in self._onions if onion() is not None), ref(runner))
        self._networks = networks_of(machines)

    def initialize(self, state: State) -> None:
        """Plan a learning rate over passes for the updates of the onion that runs; an inner run changes no plan."""
        plan = rate_schedule.plan_of(self._schedule)
        if plan is not None and state.runner is not None and (state.parent is None or plan.steps is None):
            rate_schedule.plan_for(self._schedule, updates_in(plan.passes, self, state.runner), self.name)

    def on_batch(self, state: State) -> HookIterator:
        """Update the parameters once the rings inside have left."""
        yield
        task_rates.begin_update(self._schedule, state.task, self.name)
        shard = self._own_shard()
        if shard is None or self.group is None:
            self.optimizer.step()
        else:
            shard.step(self.group, {"place": self.name, "pass": state.pass_id, "batch": state.batch_id})
        # Gradients go altogether: zeros would still move, by momentum, a parameter that the next batch does not use,
        # and a resumed run has no zeros.
        self.optimizer.clear_grad(set_to_zero=False)
        if self._schedule is not None:
            task_rates.end_update(self._schedule)

    def set_learning_rate(self, rate: float) -> None:
        """Go on with another learning rate; a resumed run does too.

            mailbox.post(lambda state: updater.set_learning_rate(1e-5))

        Args:
            rate: the learning rate; with a schedule of ``onion.schedules`` its peak, which goes on to rise and fall.

        Raises:
            OnionError: ``rate`` is no positive number, or the schedule is another one, which has a rate of its own
                wherever it is in it.
        """
        if not (is_number(rate) and rate > 0):
            raise OnionError(f"{self.name}: the learning rate must be a positive number, got {rate!r}.")
        if self._schedule is None:
            self.optimizer.set_lr(float(rate))
        elif isinstance(self._schedule, paddle().optimizer.lr.LambdaDecay):
            rate_schedule.set_peak(self._schedule, float(rate))
        else:
            raise OnionError(
                f"{self.name}: {type(self._schedule).__name__} sets the learning rate by itself; use a schedule of "
                "onion.schedules, whose peak can be set."
            )
        self.rate = float(rate)

    def adjustable(self) -> dict[str, Adjustable]:
        """Return the learning rate, where it can be set."""
        if self._schedule is not None and not isinstance(self._schedule, paddle().optimizer.lr.LambdaDecay):
            return {}
        return {"learning_rate": Adjustable(1e-12, 10.0, self._rate_now, self.set_learning_rate)}

    def _rate_now(self) -> float:
        """Return what ``set_learning_rate`` sets: the rate, or a schedule's peak."""
        return float(self.optimizer.get_lr() if self._schedule is None else self._schedule.base_lr)

    def manual_settings(self) -> dict[str, float]:
        """Return the learning rate, if it was set during a run."""
        return {} if self.rate is None else {"learning_rate": self.rate}

    def identity(self) -> dict[str, Any]:
        """Return the kind of the optimizer, its settings and its first learning rate or the schedule's peak."""
        return self._settings

    def log_values(self) -> dict[str, float]:
        """Return the learning rate, and the norm of the latest gradients before clipping if the optimizer keeps it.

        The clip of ``onion.tasks.finetune.clipping`` does, as its attribute ``norm``.
        """
        norm = self._norm()
        by_task = {f"{RATE}.{task}": rate for task, rate in task_rates.rates_by_task(self._schedule).items()}
        return {RATE: float(self.optimizer.get_lr()), **by_task, **({} if norm is None else {NORM: norm})}

    def _norm(self) -> float | None:
        norm = getattr(getattr(self.optimizer, "_grad_clip", None), "norm", None)
        return None if norm is None else float(norm)

    def state_dict(self) -> dict[str, Any]:
        """Return the optimizer's state, by the parameters' paths and not by Paddle's global counter (linear_3.w_0).

        Where several ranks share it, all of them have to call this: the first returns the whole, the others their part.
        """
        saved = self._accumulators()
        if self._own_shard() is not None and self.group is not None:
            saved = self.group.to_first(saved)
        if self._schedule is not None:
            saved |= rate_schedule.saved(self._schedule)
        if self.rate is not None:
            saved[RATE] = self.rate
        if (norm := self._norm()) is not None:  # a log may ask for it before the next update
            saved[NORM] = norm
        return saved

    def _accumulators(self) -> dict[str, Any]:
        """Return what the optimizer keeps for each parameter; of a state that ranks share, the part of this rank."""
        paths = self._paths()
        masters = self._masters()
        owners = paths | {weight.name: paths[name] for name, weight in masters.items()}
        saved = {f"{paths[name]}/{MASTER}": weight for name, weight in masters.items()}
        for slot, accumulators in self.optimizer._accumulators.items():
            saved |= {f"{owners[name]}/{slot}": value for name, value in accumulators.items()}
        own = self._by_path()
        return {key: value for key, value in saved.items() if _path(key) in own}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the optimizer's state.

        Raises:
            CheckpointError: it is the state of other parameters or of another optimizer; nothing is changed.
        """
        self._refuse_other(saved)
        own = self._by_path()
        given = {key: value for key, value in saved.items() if key not in NO_PARAMETERS and _path(key) in own}
        paths = {*map(_path, given)}
        parameters = [parameter for path, parameter in own.items() if path in paths]
        # Paddle makes a parameter's state at its first gradient, and takes loaded state only then, by counted names. A
        # parameter that gets no gradient for a while would lose its state, so all of it is made here.
        with paddle().no_grad():
            block = paddle().static.default_main_program().global_block()
            self._lend_helper()
            self.optimizer._create_accumulators(block, parameters)
        fresh = self._accumulators()
        wrong = sorted(key for key in fresh.keys() | given.keys() if _kind(fresh, key) != _kind(given, key))
        if wrong:
            raise CheckpointError(
                f"the saved state of {self.name} is of another optimizer than {type(self.optimizer).__name__}, or of "
                f"another network; they differ in {', '.join(wrong[:5])}{' and more' if len(wrong) > 5 else ''}."
            )
        for key, tensor in fresh.items():
            tensor.set_value(given[key])
        self.optimizer.clear_grad(set_to_zero=False)  # those of a batch that was interrupted are none of the next one's
        if self._schedule is not None:
            rate_schedule.restore(self._schedule, saved)
        if RATE in saved:
            self.set_learning_rate(saved[RATE])
        if hasattr(getattr(self.optimizer, "_grad_clip", None), "norm"):
            self.optimizer._grad_clip.norm = saved.get(NORM)

    def _own_shard(self) -> Shard | None:
        """Return which parameters' state this rank keeps; None: that of all.

        Raises:
            HookError: it keeps a part since an earlier run, and this is none of a group that shares it.
        """
        if self.group is not None and self.group.shards_optimizers:
            self._shard = self._shard or self.group.shard_of(self.optimizer)
        elif self._shard is not None:
            raise HookError(
                f"{self.name}: the state of the optimizer is in parts on the ranks since a run with "
                "shard_optimizer=True; go on with it, or make the optimizer anew and load a checkpoint."
            )
        return self._shard

    def _networks_now(self) -> list[tuple[str, Any]]:
        """Return the networks inside, each with its machine's name, in the onion that runs; else in the newest one.

        A Saver loads before any item further in has seen the run's State.
        """
        onions = [runner for runner in (onion() for onion in self._onions) if runner is not None]
        running = [runner for runner in onions if runner.current_run is not None]
        return networks_of(machines_inside(self, max(running, key=_depth))) if running else self._networks

    def _lend_helper(self) -> None:
        # Paddle 2.6 makes its state through an object that it makes in its first step, which is yet to come.
        if self.optimizer.helper is None:
            from paddle.base.layer_helper import LayerHelper

            self.optimizer.helper = LayerHelper(type(self.optimizer).__name__)

    def _refuse_other(self, saved: Mapping[str, Any]) -> None:
        paths = self._paths()
        known = {paths[parameter.name] for parameter in parameters_of(self.optimizer)}
        unknown = sorted(key for key in saved.keys() - NO_PARAMETERS if _path(key) not in known)
        if unknown:
            raise CheckpointError(f"the saved state of {self.name} belongs to an unknown parameter: {unknown[0]}.")
        rate_schedule.refuse_other(self._schedule, saved, self.name)

    def _masters(self) -> dict[str, Any]:
        """Return the 32-bit copies of 16-bit parameters, by Paddle's names of the parameters."""
        return getattr(self.optimizer, "_master_weights", None) or {}

    def _by_path(self) -> dict[str, Any]:
        """Return the parameters whose state is kept here, by path: all, or those of this rank."""
        paths, shard = self._paths(), self._own_shard()
        parameters = [each for each in parameters_of(self.optimizer) if shard is None or shard.has(each)]
        return {paths[parameter.name]: parameter for parameter in parameters}

    def _paths(self) -> dict[str, str]:
        """Return {Paddle's name of a parameter: its path}, such as {"linear_3.w_0": "gradient_machine.fc.weight"}."""
        paths: dict[str, str] = {}
        for machine, network in self._networks_now():
            for path, parameter in network.named_parameters():
                paths.setdefault(parameter.name, f"{machine}.{path}")
        for place, parameter in enumerate(parameters_of(self.optimizer)):
            paths.setdefault(parameter.name, f"parameter-{place}")
        return paths


def _settings_of(optimizer: Any) -> dict[str, Any]:
    """Describe an optimizer as it is given, before its learning rate is set; defaults are left out."""
    rate: Any = getattr(optimizer, "_learning_rate", None)
    peak = float(getattr(rate, "base_lr", rate)) if rate is not None else None
    known = inspect.signature(type(optimizer).__init__).parameters
    settings = {
        name: value
        for name, value in (getattr(optimizer, "_default_dict", None) or {}).items()
        if isinstance(value, bool | int | float | str)
        and value != (known[name].default if name in known else type(value)())
    }
    return {"optimizer": type(optimizer).__name__, "rate": peak, **settings}


def _refuse_wrapper(optimizer: Any) -> None:
    inner = getattr(optimizer, "inner_optimizer", None)
    if inner is not None:
        outer, name = type(optimizer).__name__, type(inner).__name__
        raise CompositionError(
            f"ParameterUpdater cannot save {outer}: it wraps another optimizer ({name}), whose state a resumed run "
            f"would lack; give it the {name} itself."
        )


def _refuse_closure(optimizer: Any) -> None:
    step = getattr(optimizer, "step", None)
    if step is not None and wants_arguments(step):
        name = type(optimizer).__name__
        raise CompositionError(
            f"ParameterUpdater steps an optimizer once a batch, but {name}.step requires a closure, to run the batch "
            "as often as it needs; use another optimizer (AdamW, Momentum), or call it in an item of your own."
        )


def _path(key: str) -> str:
    """Return the path of the parameter that a saved value belongs to."""
    return key.rpartition("/")[0]


def _kind(arrays: Mapping[str, Any], key: str) -> str | None:
    return array_kind(arrays[key]) if key in arrays else None


def _depth(runner: Runner) -> int:
    """Return the number of runs around a runner's run."""
    depth, state = 0, runner.current_run
    while state is not None:
        depth, state = depth + 1, state.parent
    return depth
