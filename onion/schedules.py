"""Learning rate schedules: give one to an optimizer, and ParameterUpdater steps it once a batch.

    rate = schedules.cosine(3e-5, total_steps=1000, warmup_ratio=0.1)
    ParameterUpdater(paddle.optimizer.AdamW(rate, parameters=network.parameters()))

Each is a ``paddle.optimizer.lr.LambdaDecay``: a peak and a factor that depends on the number of updates before this one
and on nothing else, so a resumed run goes on with the very same rates.

How long a training is can be told in updates, or in passes over the data: then the onion that runs is asked how many
updates that makes, whatever it is composed of (``Accumulate`` makes fewer).

    rate = schedules.cosine(3e-5, schedules.Passes(3))
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from onion.device import paddle
from onion.errors import CompositionError, OnionError
from onion.validation import is_whole

Factor: TypeAlias = Callable[[int], float]
"""Updates so far -> what the peak is multiplied by."""


@attrs.frozen
class Passes:
    """The length of a training in passes over its data; the ParameterUpdater finds out how many updates that is.

    Attributes:
        count: how many passes, from 1.
        batches: how many batches a pass has, for data that cannot tell (a stream). Default: ask the data.

    Raises:
        CompositionError: ``count`` or ``batches`` is no number from 1.
    """

    count: int
    batches: int | None = None

    def __attrs_post_init__(self) -> None:
        for name, value in (("count", self.count), ("batches", self.batches)):
            if value is not None and not (is_whole(value) and value >= 1):
                raise CompositionError(f"Passes: {name} must be an integer >= 1, got {value!r}.")


Length: TypeAlias = int | Passes
"""How long a training is: its updates, or its passes."""


class Plan:
    """The factor of a training whose updates are counted when it begins.

    Args:
        passes: the length of the training.
        factor_of: makes the factor of a training of so many updates.
    """

    def __init__(self, passes: Passes, factor_of: Callable[[int], Factor]) -> None:
        self.passes = passes
        self.steps: int | None = None
        """The updates of the whole training; None: not known yet."""
        self._factor_of = factor_of
        self._factor = factor_of(sys.maxsize)  # with which Paddle asks for the first rate; nobody updates by it

    def set(self, steps: int) -> None:
        """Say how many updates the training has."""
        self.steps, self._factor = steps, self._factor_of(steps)

    def __call__(self, step: int) -> float:
        """Return the factor after so many updates.

        Raises:
            OnionError: how many there are in all is not known yet.
        """
        if self.steps is None and step > 0:
            raise OnionError(
                f"a learning rate over {self.passes} is planned when a ParameterUpdater with its optimizer starts to "
                "run; to step it by hand, give the schedule a number of steps."
            )
        return self._factor(step)


class ByTask:
    """The factor of the task of an update, by the updates of that task alone; ``ParameterUpdater`` counts them."""

    def __init__(self, factor: Factor) -> None:
        self.task: str | None = None  # that of the latest update
        self.updates: dict[str, int] = {}
        self._factor = factor

    def of(self, task: str | None) -> float:
        """Return the factor of a task's next update."""
        return self._factor(self.updates.get(task or "", 0))

    def __call__(self, step: int) -> float:
        """Return the factor of the task's next update, whatever the number of all updates is."""
        return self.of(self.task)


def constant(learning_rate: float, warmup_steps: int = 0) -> Any:
    """Return a schedule that rises in a straight line and stays.

    Args:
        learning_rate: the learning rate after the warm-up.
        warmup_steps: updates in which it rises from 0. Default 0: always ``learning_rate``.

    Raises:
        CompositionError: ``warmup_steps`` is negative.
    """
    _refuse_negative(warmup_steps)
    return _schedule(learning_rate, _risen(warmup_steps, lambda step: 1.0))


def linear_warmup_and_decay(
    learning_rate: float, total_steps: Length, warmup_ratio: float = 0.1, *, warmup_steps: int | None = None
) -> Any:
    """Return a schedule that rises linearly from 0 to ``learning_rate`` and falls linearly back to 0.

    It is the schedule of BERT's fine-tuning (Devlin et al. 2018, appendix A.3).

    Args:
        learning_rate: the highest learning rate.
        total_steps: updates of the whole training, or Passes.
        warmup_ratio: the share of the steps in which it rises. Default 0.1.
        warmup_steps: updates in which it rises, whatever ``warmup_ratio`` is. Default: by the ratio.

    Raises:
        CompositionError: ``warmup_ratio`` is not from 0 to 1, or a number of steps is negative.
    """
    return polynomial(learning_rate, total_steps, warmup_ratio, warmup_steps=warmup_steps)


def palm_linear(
    learning_rate: float, total_steps: Length, warmup_ratio: float = 0.1, *, warmup_steps: int | None = None
) -> Any:
    """Return the schedule of PaddlePALM (``TriangularSchedualer``) and ERNIE (``linear_warmup_decay``), to the letter.

    Their decay counts from the first step and not from the end of the warm-up, where the rate therefore jumps down by
    the share ``warmup_ratio``. Prefer ``linear_warmup_and_decay``, unless their figures are to be met.

    Args:
        learning_rate: the learning rate at the end of the warm-up, which is not quite reached.
        total_steps: updates of the whole training, or Passes.
        warmup_ratio: the share of the steps in which it rises. Default 0.1. With 0 the rate is constant, as ERNIE's is.
        warmup_steps: updates in which it rises, whatever ``warmup_ratio`` is. Default: by the ratio.

    Raises:
        CompositionError: ``warmup_ratio`` is not from 0 to 1, or a number of steps is negative.
    """

    def factor_of(steps: int) -> Factor:
        rising = _rising(steps, warmup_ratio, warmup_steps)
        return _risen(rising, lambda step: max(0.0, 1 - step / steps) if rising else 1.0)

    return _over(total_steps, learning_rate, factor_of)


def polynomial(
    learning_rate: float,
    total_steps: Length,
    warmup_ratio: float = 0.1,
    power: float = 1.0,
    end: float = 0.0,
    *,
    warmup_steps: int | None = None,
) -> Any:
    """Return a schedule that rises in a straight line and falls to ``end`` as a power of the share that is left.

    Args:
        learning_rate: the highest learning rate.
        total_steps: updates of the whole training, or Passes.
        warmup_ratio: the share of the steps in which it rises. Default 0.1.
        power: of the share of the falling steps that is left. Default 1.0: a straight line.
        end: the learning rate at the end and from there on. Default 0.
        warmup_steps: updates in which it rises, whatever ``warmup_ratio`` is. Default: by the ratio.

    Raises:
        CompositionError: ``warmup_ratio`` is not from 0 to 1, or a number of steps is negative.
    """
    least = end / learning_rate if learning_rate else 0.0

    def factor_of(steps: int) -> Factor:
        rising = _rising(steps, warmup_ratio, warmup_steps)
        return _risen(rising, lambda step: least + (1 - least) * _left(step, rising, steps) ** power)

    return _over(total_steps, learning_rate, factor_of)


def cosine(
    learning_rate: float,
    total_steps: Length,
    warmup_ratio: float = 0.1,
    cycles: float = 0.5,
    *,
    warmup_steps: int | None = None,
) -> Any:
    """Return a schedule that rises in a straight line and falls as a cosine (Loshchilov and Hutter 2016).

    Args:
        learning_rate: the highest learning rate.
        total_steps: updates of the whole training, or Passes.
        warmup_ratio: the share of the steps in which it rises. Default 0.1.
        cycles: how many waves the cosine makes. Default 0.5: once from the top to 0.
        warmup_steps: updates in which it rises, whatever ``warmup_ratio`` is. Default: by the ratio.

    Raises:
        CompositionError: ``warmup_ratio`` is not from 0 to 1, or a number of steps is negative.
    """

    def factor_of(steps: int) -> Factor:
        rising = _rising(steps, warmup_ratio, warmup_steps)
        return _risen(rising, lambda step: (1 + math.cos(2 * math.pi * cycles * (1 - _left(step, rising, steps)))) / 2)

    return _over(total_steps, learning_rate, factor_of)


def noam(learning_rate: float, warmup_steps: int) -> Any:
    """Return the schedule of the Transformer (Vaswani et al. 2017) as ERNIE wrote it: by its peak, not by its width.

    Update n, counted from 1, has ``learning_rate * sqrt(w) * min(n ** -0.5, n * w ** -1.5)`` for w warm-up steps.

    Args:
        learning_rate: the highest learning rate, that of update number ``warmup_steps``.
        warmup_steps: updates in which it rises. With 0 the rate is constant, as ERNIE's is.

    Raises:
        CompositionError: ``warmup_steps`` is negative.
    """
    _refuse_negative(warmup_steps)
    if warmup_steps == 0:
        return constant(learning_rate)
    return _schedule(learning_rate, lambda step: min(((step + 1) / warmup_steps) ** -0.5, (step + 1) / warmup_steps))


def by_task(schedule: Any) -> Any:
    """Return the schedule in which each task rises and falls by its own updates, as if it were trained alone.

        AdamW(schedules.by_task(schedules.noam(5e-5, warmup_steps=4000)), ...)

    Of several tasks (``TaskSampler``) one that comes in late is warmed up then, as ERNIE 2.0 (Sun et al. 2020) does.

    Args:
        schedule: one of this module, over a number of updates.

    Raises:
        CompositionError: it is another one, or over Passes.
    """
    factor = getattr(schedule, "lr_lambda", None)
    if factor is None or isinstance(factor, Plan | ByTask):
        over = f"one over {factor.passes}" if isinstance(factor, Plan) else type(factor or schedule).__name__
        raise CompositionError(
            f"by_task takes a schedule of onion.schedules over a number of updates, noam(5e-5, 4000), not {over}."
        )
    return _schedule(schedule.base_lr, ByTask(factor))


def _over(length: Length, learning_rate: float, factor_of: Callable[[int], Factor]) -> Any:
    """Return the schedule of a training of some length."""
    return _schedule(learning_rate, Plan(length, factor_of) if isinstance(length, Passes) else factor_of(length))


def _schedule(learning_rate: float, factor: Factor) -> Any:
    return paddle().optimizer.lr.LambdaDecay(learning_rate, factor)


def _risen(rising: int, after: Factor) -> Factor:
    """Return the factor that rises from 0 to 1 in so many steps and is ``after`` from there on."""
    return lambda step: step / rising if step < rising else after(step)


def _left(step: int, rising: int, steps: int) -> float:
    """Return the share of the falling steps that is left: 1 at the top, 0 from the end on."""
    return max(0.0, (steps - step) / max(1, steps - rising))


def _rising(steps: int, warmup_ratio: float, warmup_steps: int | None) -> int:
    """Return the number of steps of the warm-up."""
    if not 0 <= warmup_ratio <= 1:
        raise CompositionError(f"warmup_ratio must be between 0 and 1 (a share of the steps), got {warmup_ratio}.")
    if steps < 0:
        raise CompositionError(f"total_steps must be >= 0, got {steps}.")
    if warmup_steps is None:
        return round(steps * warmup_ratio)
    _refuse_negative(warmup_steps)
    return warmup_steps


def _refuse_negative(warmup_steps: int) -> None:
    if warmup_steps < 0:
        raise CompositionError(f"warmup_steps must be >= 0, got {warmup_steps}.")
