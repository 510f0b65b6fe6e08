"""Parameters that are not trained for a while."""

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
    """The base of Freeze and Unfreeze: some parameters of a network are trained from a step on."""

    keep_for_inference = False
    place_rules = (Around(NETWORKS, "acts on its way in, on the networks inside it"),)
    transient = ("_waits",)  # a resumed run that begins at the step does not wait for it

    def __init__(self, network: Any, pattern: str | re.Pattern[str], step: int | None) -> None:
        self.network, self.pattern = network, pattern
        self._parameters = matching(network, pattern)
        self._step = step
        self.reset()

    def reset(self) -> None:
        """Do not wait; the first step of the run is not known yet."""
        self._waits = False

    @contextmanager
    def _held(self, state: State) -> Iterator[None]:
        """Wait for the step in the body if it is still ahead; then restore all parameters."""
        self._waits = self._step is not None and state.step < self._step
        before = [parameter.stop_gradient for parameter in self._parameters]
        try:
            yield
        finally:
            for parameter, frozen in zip(self._parameters, before, strict=True):
                parameter.stop_gradient = frozen

    def _set(self, *, frozen: bool) -> None:
        for parameter in self._parameters:
            parameter.stop_gradient = frozen

    def on_batch(self, state: State) -> None:
        """Unfreeze once, at the step."""
        if self._waits and self._step is not None and state.next_step > self._step:
            self._waits = False
            self._set(frozen=False)


class Freeze(_FromAStep):
    r"""Freeze parameters for the whole run or until a step.

        Freeze(network, "encoder.*", until=100)                      # trains the head first
        Freeze(network, re.compile(r"layers\.[0-5]\."))              # never trains the lower half

    It sets their ``stop_gradient``, so they get no gradient and no optimizer moves them, neither by momentum nor by
    weight decay. After the run, also after an error, each parameter has its previous setting. Where another ring trains
    the same parameters in the same batch, use ``StopGradient``, which acts on one ring only.

    Inside an item that passes on only some batches (Every, ForTask), they are unfrozen by the first of those batches at
    or after the step.

    On the CPU, the gradient through a ``paddle.nn.LayerNorm`` with a frozen weight is wrong (Paddle 2.6 to 3.3);
    :class:`onion.models.ops.LayerNorm` is the same layer without this defect.

    Args:
        network: the network.
        pattern: paths of its parameters (``network.named_parameters()``): a glob that matches the whole path (``*``
            also matches dots), or a compiled regular expression to search for in it.
        until: the first step that trains them, counted as ``state.step``: with 100 they are frozen in the first 100
            batches. Default: never.

    Raises:
        CompositionError: no parameter matches, ``until`` is not an integer >= 0, or no network is inside the item.
    """

    def __init__(self, network: Any, pattern: str | re.Pattern[str], until: int | None = None) -> None:
        if until is not None:
            _refuse_no_step("Freeze", "until", until)
        super().__init__(network, pattern, until)
        self.until = until
        self.frozen = self._parameters if until is None else []

    def initialize(self, state: State) -> HookIterator:
        """Freeze unless the step has passed; restore on the way out."""
        with self._held(state):
            if self.until is None or self._waits:
                self._set(frozen=True)
            yield


class Unfreeze(_FromAStep):
    """Train parameters from a step on, even if they were frozen.

        Freeze(network, "encoder.*"), Unfreeze(network, "encoder.layers.11.*", at=100), ...  # layer by layer

    Put it inside the Freeze that it ends. After the run each parameter has its previous setting.

    Args:
        network: the network.
        pattern: as for Freeze.
        at: the first step that trains them, counted as ``state.step``.

    Raises:
        CompositionError: no parameter matches, ``at`` is not an integer >= 0, or a Freeze of the same network, or no
            network, is inside the item.
    """

    def __init__(self, network: Any, pattern: str | re.Pattern[str], at: int) -> None:
        _refuse_no_step("Unfreeze", "at", at)
        super().__init__(network, pattern, at)
        self.at = at

    def check(self, runner: Runner) -> None:
        """Refuse a place outside a Freeze of the network, which would freeze the parameters again."""
        for item in runner.inside(self):
            if isinstance(item, Freeze) and item.network is self.network:
                raise CompositionError(f"{item.name} is inside {self.name}; move it outside (before it).")

    def initialize(self, state: State) -> HookIterator:
        """Unfreeze if the step has passed; restore on the way out."""
        with self._held(state):
            if not self._waits:
                self._set(frozen=False)
            yield


def matching(network: Any, pattern: str | re.Pattern[str]) -> list[Any]:
    """Return the parameters of a network whose paths match a glob or a compiled regular expression.

    Raises:
        CompositionError: none matches; the message names the nearest paths.
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


def _refuse_no_step(item: str, argument: str, step: object) -> None:
    if not (is_whole(step) and step >= 0):
        raise CompositionError(f"{item}: {argument} must be an integer >= 0 (steps), got {step!r}.")
