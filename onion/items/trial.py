"""A run inside another one that begins at its current state, and leaves no trace in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from onion.checkpointing import rng
from onion.checkpointing.run_state import stateful
from onion.engine.item import HookIterator, RunnerItem, overrides
from onion.engine.item_tree import by_default
from onion.engine.state import State
from onion.errors import CompositionError, HookError
from onion.items.logger import Logger
from onion.items.parameter_updater import ParameterUpdater
from onion.items.saver import Saver
from onion.training.pairing import parameters_of

if TYPE_CHECKING:
    from onion.engine.runner import Runner


class Trial(RunnerItem):
    """Begin a run at the state of the one around it, on separate objects, and leave that one as it was.

        def training(network, *rings):
            updater = ParameterUpdater(paddle.optimizer.Momentum(0.1, parameters=network.parameters()))
            return Runner(*rings, DataProvider(train), updater, GradientMachine(network))

        # ten steps at another rate, from a batch hook of training(network):
        faster = Observer(initialize=lambda trial: trial.runner[ParameterUpdater].set_learning_rate(0.3))
        tried = training(deepcopy(network), Trial(), faster).run(steps=state.step + 10, parent=state)

    On the way into the run every item takes over the state of the item of its name in the run around it: parameters,
    what the optimizer has gathered, the place in the data, its random numbers. An item without such a namesake starts
    from its initial state, and so does a Logger, which writes its own file. Items of one class that are not the same
    ones in both, as in a trial of one of several networks, need given names (``item.name = "critic"``) instead of
    numbers. What the trial is to try is set further in, in ``initialize``. The counters are taken over too, so
    ``run(steps=...)`` counts on, and the first batch is the one that comes after the batch under way. On the way out
    the random generators of the process are restored: trials that differ in one setting begin alike, see the same
    batches and draw the same numbers.

    It goes outside everything that has a state.

    Raises:
        CompositionError: something that has a state is outside it, or a Saver inside.
        HookError: in ``run``: there is no run around; the two have an item with a state, a parameter that gets
            gradients, or a log file in common, which would leave a trace; or of several items of one class it cannot be
            told which takes over from which.
    """

    keep_for_inference = False

    def check(self, runner: Runner) -> None:
        """Require a place outside everything that has a state to take over, and refuse a Saver."""
        inside = runner.inside(self)
        for item in stateful(runner):
            if not any(item is each for each in inside):
                raise CompositionError(
                    f"{self.name} is inside {item.name}, to which it passes its state; move it further out."
                )
        for saver in runner.all(Saver):
            raise CompositionError(
                f"{self.name} starts from the state of the outer run, and {saver.name} from its folder; leave "
                f"{saver.name} out."
            )

    def initialize(self, state: State) -> HookIterator:
        """Take over the other run's state, and restore the random generators at the end."""
        before = rng.capture()
        try:
            self._take_over(state)
            yield
        finally:
            rng.restore(before)

    def _take_over(self, state: State) -> None:
        parent = state.parent
        if parent is None or parent.runner is None or state.runner is None:
            raise HookError(
                f"{self.name} starts from the state of an outer run; run it in a batch hook: run(parent=state)."
            )
        _refuse_shared(state.runner, parent.runner)
        _refuse_mistaken(state.runner, parent.runner)
        there = {item.name: item for item in stateful(parent.runner)}
        for item in stateful(state.runner):
            if item.name in there and not isinstance(item, Logger):
                item.load_state_dict(there[item.name].state_dict())
        state.pass_id, state.batch_id, state.step = parent.pass_id, parent.batch_id + 1, parent.step


def _refuse_shared(trial: Runner, parent: Runner) -> None:
    """Raise HookError for an item with a state, a parameter that learns, or a log file that both runs have."""
    learning = {id(parameter) for item in parent.walk() for parameter in _learning(item)}
    logs = {log.path.resolve() for log in parent.all(Logger)}
    for item in trial.walk():
        if (
            (overrides(item, "state_dict") and item in parent)
            or any(id(parameter) in learning for parameter in _learning(item))
            or (isinstance(item, Logger) and item.path.resolve() in logs)
        ):
            raise HookError(
                f"{item.name} of the trial shares, changes or writes an object of the outer run; give the trial "
                "objects of its own (deepcopy(network), an optimizer of its parameters, another log file)."
            )


def _learning(item: RunnerItem) -> list[Any]:
    """Return the parameters that an item moves or makes gradients of."""
    if isinstance(item, ParameterUpdater):
        return parameters_of(item.optimizer)
    return list(item.network.parameters()) if item.computes_gradients and item.network is not None else []


def _refuse_mistaken(trial: Runner, parent: Runner) -> None:
    """Raise HookError where names that were not given leave open which item takes over from which."""
    for kind in {type(item): None for item in stateful(trial)}:
        there = {item.name for item in _of(kind, parent)}
        here = {item.name for item in _of(kind, trial) if by_default(item)}
        if here and there and here != there:
            raise HookError(
                f"the trial has {_told(here)}, the outer run {_told(there)}, so it is not clear which takes over "
                f"from which; give every {kind.__name__} a name, the same in both (item.name = 'critic') "
                "or, if it is to start from its initial state, a name of its own."
            )


def _of(kind: type[RunnerItem], runner: Runner) -> Iterator[RunnerItem]:
    return (item for item in stateful(runner) if type(item) is kind and not isinstance(item, Logger))


def _told(names: set[str]) -> str:
    return " and ".join(sorted(names))
