"""Parameters that stay as they are for a while."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from onion.engine.item import HookIterator, RunnerItem
from onion.engine.placement import NETWORKS, Around
from onion.engine.state import State
from onion.errors import CompositionError
from onion.validation import is_whole

if TYPE_CHECKING:
    from onion.engine.runner import Runner


class _FromAStep(RunnerItem):
    """What Freeze and Unfreeze do alike: some parameters of a network learn from a step on."""

    keep_for_inference = False
    place_rules = (Around(NETWORKS, "acts on its way in, on the networks inside it"),)
    transient = ("_waits",)  # before the very batch of the step a resumed run has waited already

    def __init__(self, network: Any, pattern: str | re.Pattern[str], step: int | None) -> None:
        self.network, self.pattern = network, pattern
        self._parameters = matching(network, pattern)
        self._step = step
        self.reset()

    def reset(self) -> None:
        """Wait for nothing yet; the step that the run begins with is not known."""
        self._waits = False

    @contextmanager
    def _held(self, state: State) -> Iterator[None]:
        """Wait for the step, if it is to come, in the body; then put everything back."""
        self._waits = self._step is not None and state.step < self._step
        with _put_back(self._parameters):
            yield

    def on_batch(self, state: State) -> None:
        """Unfreeze, once, when it is time."""
        if self._waits and self._step is not None and state.next_step > self._step:
            self._waits = False
            _set(self._parameters, frozen=False)


class Freeze(_FromAStep):
    r"""Keep parameters as they are, from the beginning of the run or until a step.

        Freeze(network, "encoder.*", until=100)                      # a head learns first
        Freeze(network, re.compile(r"layers\.[0-5]\."))              # the lower half never learns

    Their ``stop_gradient`` is set, so they get no gradient, and no optimizer moves them: not by momentum and not by
    weight decay either. After the run, also one that failed, each parameter may be trained or not as before it. Where
    another ring trains the same parameters in the same batch, ``StopGradient`` keeps them out of one ring only.

    Inside an item that lets only some batches through (Every, ForTask) they stay frozen until the first of those, from
    the step on.

    On the CPU, a gradient that goes through ``paddle.nn.LayerNorm`` with a frozen weight is wrong (Paddle 2.6 to 3.3);
    :class:`onion.models.ops.LayerNorm` is the same layer without that.

    Args:
        network: whose parameters.
        pattern: their paths (``network.named_parameters()``): a glob for the whole path (``*`` also stands for dots),
            or a compiled regular expression that is found in it.
        until: the first step that trains them, counted as ``state.step``: with 100 they are frozen for the first 100
            batches. Default: never.

    Raises:
        CompositionError: no parameter matches, or ``until`` is no number of steps; or no network stands inside it.
    """

    def __init__(self, network: Any, pattern: str | re.Pattern[str], until: int | None = None) -> None:
        if until is not None:
            _refuse_no_step("Freeze", "until", until)
        super().__init__(network, pattern, until)
        self.until = until
        self.frozen = self._parameters if until is None else []

    def initialize(self, state: State) -> HookIterator:
        """Freeze, where it is not too late for it; put everything back on the way out."""
        with self._held(state):
            if self.until is None or self._waits:
                _set(self._parameters, frozen=True)
            yield


class Unfreeze(_FromAStep):
    """Train parameters from a step on, whoever froze them.

        Freeze(network, "encoder.*"), Unfreeze(network, "encoder.layers.11.*", at=100), ...  # layer by layer

    It stands inside the Freeze that it puts an end to. After the run each parameter may be trained or not as before.

    Args:
        network: whose parameters.
        pattern: as in Freeze.
        at: the first step that trains them, counted as ``state.step``.

    Raises:
        CompositionError: no parameter matches, ``at`` is no number of steps, or a Freeze of the same network stands
            inside, or no network.
    """

    def __init__(self, network: Any, pattern: str | re.Pattern[str], at: int) -> None:
        _refuse_no_step("Unfreeze", "at", at)
        super().__init__(network, pattern, at)
        self.at = at

    def check(self, runner: Runner) -> None:
        """Insist on standing inside every Freeze of the network, whose word would else come last."""
        for item in runner.inside(self):
            if isinstance(item, Freeze) and item.network is self.network:
                raise CompositionError(f"{item.name} is inside {self.name}; move it outside (before it).")

    def initialize(self, state: State) -> HookIterator:
        """Unfreeze, if it was time before; put everything back on the way out."""
        with self._held(state):
            if not self._waits:
                _set(self._parameters, frozen=False)
            yield


def matching(network: Any, pattern: str | re.Pattern[str]) -> list[Any]:
    """Return the parameters of a network whose paths match a glob or a compiled regular expression.

    Raises:
        CompositionError: there is none; the message names the nearest paths.
    """
    parameters = dict(network.named_parameters())
    found = [parameter for path, parameter in parameters.items() if _matches(path, pattern)]
    if not found:
        shown = pattern if isinstance(pattern, str) else pattern.pattern
        near = get_close_matches(shown, parameters, n=3, cutoff=0.3) or list(parameters)[:3]
        raise CompositionError(
            f"no parameter of {type(network).__name__} matches {shown!r}; there are {', '.join(near) or 'none at all'}"
            f"{' and others' if len(parameters) > len(near) else ''}."
        )
    return found


def _matches(path: str, pattern: str | re.Pattern[str]) -> bool:
    return fnmatchcase(path, pattern) if isinstance(pattern, str) else pattern.search(path) is not None


@contextmanager
def _put_back(parameters: list[Any]) -> Iterator[None]:
    before = [parameter.stop_gradient for parameter in parameters]
    try:
        yield
    finally:
        for parameter, frozen in zip(parameters, before, strict=True):
            parameter.stop_gradient = frozen


def _set(parameters: list[Any], *, frozen: bool) -> None:
    for parameter in parameters:
        parameter.stop_gradient = frozen


def _refuse_no_step(item: str, argument: str, step: object) -> None:
    if not (is_whole(step) and step >= 0):
        raise CompositionError(f"{item}: {argument} must be an integer >= 0 (steps), got {step!r}.")
