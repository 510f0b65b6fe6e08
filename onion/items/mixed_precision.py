"""16-bit arithmetic inside, and a loss scale against underflow."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

from onion.device import paddle
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.placement import NETWORKS, Around, refuse_wrong_place
from onion.engine.state import State
from onion.errors import CheckpointError, CompositionError, HookError
from onion.items.parameter_updater import ParameterUpdater
from onion.training.loss_scale import LossScale
from onion.training.microbatches import check_inside_updater, clear_gradients, refuse_sharers_around, updaters_around
from onion.training.pairing import machines_inside, parameters_of

if TYPE_CHECKING:
    from onion.engine.runner import Runner

log = logging.getLogger("onion")

IN_32_BITS = ("softmax_with_cross_entropy", "cross_entropy_with_softmax", "mean")
"""Operators of a loss that are computed in 32 bits at every level: Paddle 2.6 has no bfloat16 for them on a GPU, where
level O2 would use it. The first two are one operator, with its names in Paddle 2 and 3."""

OF_NETWORKS = Around(NETWORKS, "sets the arithmetic of the networks inside it")
"""Its place where nothing is updated; otherwise it is between updater and machines."""


class MixedPrecision(RunnerItem):
    """Compute the inside in 16 bits where that is safe (``paddle.amp``), and update in 32.

        Runner(data, ParameterUpdater(optimizer), MixedPrecision("float16"), GradientMachine(network))

    Put it between ParameterUpdater and GradientMachine, and outside items that run a machine several times per update.
    With a loss scale, the loss is multiplied by it before backward and the gradients are divided by it on the way out.
    If they have overflowed, they are cleared, so the optimizer changes nothing (the batch still counts, and the
    learning rate schedule is stepped), and the scale shrinks. Detecting this waits for the device in every update.

    Paddle has no 16-bit arithmetic on the CPU and on old GPUs, where a warning is logged and everything stays in 32
    bits; the loss scale still applies. In a test or inference onion, without an updater, only the arithmetic changes.

    Args:
        dtype: ``bfloat16`` (default) or ``float16``.
        level: ``O1`` (default): parameters in 32 bits, products in 16. ``O2``: the parameters too, except norms, with
            32-bit copies in the optimizer; the networks inside are cast when the onion is built.
        scale: the loss scale, such as ``LossScale.ernie()``. Default: ``LossScale()`` for float16, none for bfloat16,
            which has the range of 32 bits.

    Raises:
        CompositionError: another dtype or level, or the item is not between a ParameterUpdater and all its gradient
            machines, outside items that make one update of several batches.
        HookError: there are gradients of an earlier batch on the way in, which would be divided twice.
    """

    def __init__(
        self,
        dtype: Literal["bfloat16", "float16"] = "bfloat16",
        level: Literal["O1", "O2"] = "O1",
        scale: LossScale | None = None,
    ) -> None:
        if dtype not in ("bfloat16", "float16"):
            raise CompositionError(f"MixedPrecision: dtype must be 'bfloat16' or 'float16', got {dtype!r}.")
        if level not in ("O1", "O2"):
            raise CompositionError(f"MixedPrecision: level must be 'O1' or 'O2', got {level!r}.")
        self.dtype, self.level = dtype, level
        self.scale = LossScale() if scale is None and dtype == "float16" else scale
        self.reset()

    def reset(self) -> None:
        """Count overflows from 0."""
        self.overflows = 0
        self._parameters: list[Any] = []
        self._able = False

    def check(self, runner: Runner) -> None:
        """Require a place between updater and machine; cast the networks inside at O2."""
        late = [item.name for item in runner.inside(self) if isinstance(item, ParameterUpdater)]
        if late:
            raise CompositionError(
                f"{self.name} is outside {late[0]}, which needs the gradients that it prepares; swap them."
            )
        updaters, machines = updaters_around(self, runner), machines_inside(self, runner)
        if updaters:
            check_inside_updater(self, runner)
            refuse_sharers_around(self, runner, "and has to see all of an update; move it outside.")
        else:
            refuse_wrong_place(self, runner.layout, [OF_NETWORKS])
        networks = [machine.network for machine in machines if machine.network is not None]
        if self.level == "O2" and networks and self._is_able():
            optimizers = [updater.optimizer for updater in updaters]
            paddle().amp.decorate(networks, optimizers or None, level="O2", dtype=self.dtype)

    def initialize(self, state: State) -> None:
        """Find the parameters that are updated."""
        self._able = self._is_able()
        if not self._able:
            device = paddle().device.get_device()
            log.warning("%s: %s is not supported on %s; everything stays in 32 bits", self.name, self.dtype, device)
        updaters = [] if state.runner is None else updaters_around(self, state.runner)
        self._parameters = [each for updater in updaters for each in parameters_of(updater.optimizer)]

    def on_batch(self, state: State) -> HookIterator:
        """Run the inside in 16 bits; scale on the way in, unscale on the way out."""
        if self.scale is None or not self._parameters:
            with self._arithmetic():
                yield
            return
        self._refuse_earlier(state)
        share = state.share
        state.share = share * self.scale.value
        try:
            with self._arithmetic():
                yield
        except BaseException:
            clear_gradients(self._parameters)  # they are scaled and incomplete
            raise
        finally:
            state.share = share
        self._unscale(self.scale, state)

    def log_values(self) -> dict[str, float]:
        """Return the loss scale and the number of overflows, if there is a scale."""
        return {} if self.scale is None else {"loss_scale": self.scale.value, "overflows": float(self.overflows)}

    def state_dict(self) -> dict[str, Any]:
        """Return the loss scale's state, if there is one."""
        return {} if self.scale is None else {**self.scale.state_dict(), "overflows": self.overflows}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Restore the loss scale.

        Raises:
            CheckpointError: only one of checkpoint and item has a loss scale.
        """
        if saved.keys() != self.state_dict().keys():
            has, lacks = ("checkpoint", "item") if saved else ("item", "checkpoint")
            raise CheckpointError(f"{self.name}: the {has} has a loss scale, but the {lacks} has none.")
        if self.scale is not None:
            self.scale.load_state_dict(saved)
            self.overflows = saved["overflows"]

    def _is_able(self) -> bool:
        """Return whether the device has the arithmetic."""
        if paddle().device.get_device() == "cpu":  # Paddle reports bfloat16 there, but auto_cast has no effect
            return False
        amp = paddle().amp
        return bool(amp.is_float16_supported() if self.dtype == "float16" else amp.is_bfloat16_supported())

    def _arithmetic(self) -> AbstractContextManager[None]:
        """Return the context of the inside. Paddle's own would warn in every batch where it has no effect."""
        auto_cast: Callable[..., AbstractContextManager[None]] = paddle().amp.auto_cast
        if not self._able:
            return nullcontext()
        return auto_cast(level=self.level, dtype=self.dtype, custom_black_list=IN_32_BITS)

    def _refuse_earlier(self, state: State) -> None:
        if any(parameter.grad is not None for parameter in self._parameters):
            raise HookError(
                f"{self.name} found gradients on its way into step {state.step}, which its loss scale would divide "
                "twice; move it outside the item that runs a gradient machine several times an update, or freeze "
                "what another machine must not move."
            )

    def _unscale(self, scale: LossScale, state: State) -> None:
        gradients = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
        if not gradients:
            return  # the batch was skipped
        finite = unscale(gradients, scale.value)
        scale.update(finite)
        if not finite:
            self.overflows += 1
            clear_gradients(self._parameters)
            log.info("%s: step %d overflowed and was skipped; loss scale %g", self.name, state.step, scale.value)


def unscale(gradients: list[Any], scale: float) -> bool:
    """Divide gradients by a scale in place; return whether all of them are finite."""
    overflowed = False
    for dtype in dict.fromkeys(gradient.dtype for gradient in gradients):
        group = [gradient for gradient in gradients if gradient.dtype == dtype]
        # Paddle needs the scale in the gradients' precision, except for 16 bits.
        factor = paddle().to_tensor([scale], dtype="float64" if dtype == paddle().float64 else "float32")
        found = paddle().to_tensor([False])
        # One kernel for all: that of Paddle's GradScaler, which itself does nothing on the CPU.
        paddle()._legacy_C_ops.check_finite_and_unscale(group, factor, group, found)
        overflowed |= bool(found)
    return not overflowed
