"""Parameters that get no gradient from what stands inside."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from onion.errors import CompositionError
from onion.item import RunnerItem, Way
from onion.items.freeze import Freeze, Unfreeze, matching
from onion.items.parameter_updater import ParameterUpdater, parameters_of
from onion.state import State

if TYPE_CHECKING:
    from onion.runner import Runner


class Frozen(RunnerItem):
    """Keep parameters out of what stands inside: gradients go through them there, and none stays in them.

        Runner(Frozen(discriminator), ParameterUpdater(optimizer), GradientMachine(generator, cost=...))

    Freeze holds for the whole run; this holds for its inside only, batch by batch, so that another ring may train the
    same parameters in the same batch. Here the generator learns through the discriminator, and the discriminator's own
    step finds no gradient that was not meant for it.

    Args:
        network: whose parameters.
        pattern: their paths, as in Freeze. Default: all.

    Raises:
        CompositionError: no parameter matches; nothing inside makes gradients; an optimizer inside has no other
            parameters, so that it would never move; or a Freeze or Unfreeze of the same network stands inside.
    """

    predicts = False

    def __init__(self, network: Any, pattern: str | re.Pattern[str] = "*") -> None:
        self.network, self.pattern = network, pattern
        self._parameters = matching(network, pattern)

    def check(self, runner: Runner) -> None:
        """Insist on something to be kept out of, and refuse an inside that this would make no sense for."""
        inside = runner.inside(self)
        if not any(getattr(item, "makes_gradients", False) for item in inside):
            raise CompositionError(f"{self.name} has no gradient machine inside it; put it outside of one (before it).")
        frozen = {id(parameter) for parameter in self._parameters}
        for item in inside:
            if isinstance(item, ParameterUpdater) and frozen.issuperset(map(id, parameters_of(item.optimizer))):
                raise CompositionError(
                    f"{item.name} stands inside {self.name}, which keeps gradients from all of its parameters; put it "
                    "outside, or give it those of the other network."
                )
            if isinstance(item, (Freeze, Unfreeze)) and item.network is self.network:
                raise CompositionError(f"{item.name} stands inside {self.name}; put it outside (before it).")

    def on_batch(self, state: State) -> Way:
        """Freeze on the way in; on the way out, also after an error, let those learn that did before."""
        learning = [parameter for parameter in self._parameters if not parameter.stop_gradient]
        for parameter in learning:
            parameter.stop_gradient = True
        try:
            yield
        finally:
            for parameter in learning:
                parameter.stop_gradient = False
