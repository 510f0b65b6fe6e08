"""Parameters that get no gradient from what is inside."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.state import State
from onion.errors import CompositionError
from onion.items.freeze import Freeze, Unfreeze, matching
from onion.items.parameter_updater import ParameterUpdater
from onion.training.pairing import machines_inside, parameters_of

if TYPE_CHECKING:
    from onion.engine.runner import Runner


class StopGradient(RunnerItem):
    """Keep gradients of what is inside from parameters: they go through them, and none stays in them.

        Runner(StopGradient(discriminator), ParameterUpdater(optimizer), GradientMachine(generator, loss=...))

    Freeze holds for the whole run; this holds for its inside only, batch by batch, so that another ring may train the
    same parameters in the same batch. Here the generator learns through the discriminator, and the discriminator's own
    step finds no gradient that was not meant for it.

    Args:
        network: whose parameters.
        pattern: their paths, as in Freeze. Default: all.

    Raises:
        CompositionError: no parameter matches; nothing inside makes gradients; an optimizer has no other parameters and
            no gradients from outside, so that it would never move; or a Freeze or Unfreeze of the same network is
            inside.
    """

    keep_for_inference = False

    def __init__(self, network: Any, pattern: str | re.Pattern[str] = "*") -> None:
        self.network, self.pattern = network, pattern
        self.frozen = matching(network, pattern)

    def check(self, runner: Runner) -> None:
        """Require a gradient machine inside, and refuse an inside that could not train."""
        inside = runner.inside(self)
        if not any(item.computes_gradients for item in inside):
            raise CompositionError(
                f"{self.name} has no gradient machine inside it; move it outside of one (before it)."
            )
        self._refuse_stilled(runner)
        for item in inside:
            if isinstance(item, (Freeze, Unfreeze)) and item.network is self.network:
                raise CompositionError(f"{item.name} is inside {self.name}; move it outside (before it).")

    def _refuse_stilled(self, runner: Runner) -> None:
        """Raise CompositionError for an updater, inside or around, that would never move anything."""
        inside, frozen = {id(item) for item in runner.inside(self)}, {id(parameter) for parameter in self.frozen}
        for updater in runner.all(ParameterUpdater):
            machines = machines_inside(updater, runner)
            if inside.issuperset(map(id, machines)) and frozen.issuperset(map(id, parameters_of(updater.optimizer))):
                where = "inside" if id(updater) in inside else "outside"
                raise CompositionError(
                    f"{updater.name} is {where} {self.name}, which keeps gradients from all of its parameters: it "
                    "would never update anything; give its optimizer, or StopGradient, the parameters of the other "
                    "network."
                )

    def on_batch(self, state: State) -> HookIterator:
        """Freeze on the way in; on the way out, also after an error, let those learn that did before."""
        learning = [parameter for parameter in self.frozen if not parameter.stop_gradient]
        for parameter in learning:
            parameter.stop_gradient = True
        try:
            yield
        finally:
            for parameter in learning:
                parameter.stop_gradient = False
