"""A run inside another one that begins where that one stands, and leaves no trace in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onion import generators
from onion.errors import CompositionError, HookError
from onion.item import RunnerItem, Way
from onion.items.parameter_updater import ParameterUpdater, parameters_of
from onion.items.saver import stateful
from onion.state import State

if TYPE_CHECKING:
    from onion.runner import Runner


class Trial(RunnerItem):
    """Begin a run where the one around it stands, on objects of its own, and leave that one as it was.

        def training(network, *rings):
            updater = ParameterUpdater(paddle.optimizer.Momentum(0.1, parameters=network.parameters()))
            return Runner(*rings, DataProvider(train), updater, GradientMachine(network))

        # ten steps at another rate, from a batch hook of training(network):
        faster = Observer(initialize=lambda trial: trial.runner[ParameterUpdater].set_learning_rate(0.3))
        tried = training(deepcopy(network), Trial(), faster).run(steps=state.step + 10, parent=state)

    On the way into the run every item takes over the state of the item of its name in the run around it: parameters,
    what the optimizer has gathered, the place in the data, random numbers of its own. An item without such a namesake
    begins anew. What the trial is to try is set further in, in ``initialize``. The counters are taken over too, so
    ``run(steps=...)`` counts on, and the first batch is the one that comes after the batch under way. On the way out
    the random generators of the process go back to where they were: trials that differ in one setting begin alike, see
    the same batches and draw the same numbers.

    It stands outside everything that has a state.

    Raises:
        CompositionError: something that has a state stands outside it.
        HookError: in ``run``: there is no run around; or the two have an item with a state, or a parameter that is
            moved, in common, which would leave a trace.
    """

    predicts = False

    def check(self, runner: Runner) -> None:
        """Insist on standing outside everything that has a state to take over."""
        inside = runner.inside(self)
        for item in stateful(runner):
            if not any(item is each for each in inside):
                raise CompositionError(
                    f"{self.name} stands inside {item.name}, which it gives its state to; move it further out."
                )

    def initialize(self, state: State) -> Way:
        """Take over the other run's state, and put the random generators back in the end."""
        before = generators.capture()
        try:
            self._take_over(state)
            yield
        finally:
            generators.restore(before)

    def _take_over(self, state: State) -> None:
        parent = state.parent
        if parent is None or parent.runner is None or state.runner is None:
            raise HookError(f"{self.name} begins where another run stands; run it in a batch hook: run(parent=state).")
        _refuse_shared(state.runner, parent.runner)
        there = {item.name: item for item in stateful(parent.runner)}
        for item in stateful(state.runner):
            if item.name in there:
                item.load_state_dict(there[item.name].state_dict())
        state.pass_id, state.batch_id, state.step = parent.pass_id, parent.batch_id + 1, parent.step


def _refuse_shared(trial: Runner, parent: Runner) -> None:
    """Raise HookError for an item with a state, or a parameter to be moved, that both runs have."""
    moved = {
        id(parameter) for updater in parent.all(ParameterUpdater) for parameter in parameters_of(updater.optimizer)
    }
    for item in stateful(trial):
        own = parameters_of(item.optimizer) if isinstance(item, ParameterUpdater) else []
        if item in parent or any(id(parameter) in moved for parameter in own):
            raise HookError(
                f"{item.name} of the trial is, or moves, what the run around it has; give the trial objects of its own "
                "(deepcopy(network), and an optimizer of its parameters)."
            )
