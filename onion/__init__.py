"""onion: a training loop made of nested rings, for PaddlePaddle.

    from onion import DataProvider, GradientMachine, ParameterUpdater, Runner

    Runner(
        DataProvider(data, batch_size=32, shuffle=True),
        ParameterUpdater(optimizer),
        GradientMachine(network),
    ).run(passes=3)

Importing onion is light: Paddle loads with the first item that needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from onion.device import ignore_missing_ccache
from onion.errors import CheckpointError, CompositionError, DataError, HookError, OnionError, WeightsError
from onion.item import RunnerItem, Way
from onion.math_library import set_up_math_library
from onion.runner import Runner
from onion.state import State
from onion.system import check_system

if TYPE_CHECKING:
    from onion.items.accumulate import Accumulate
    from onion.items.averaged import Averaged
    from onion.items.data_provider import DataProvider
    from onion.items.early_stop import EarlyStop
    from onion.items.evaluator import Evaluator
    from onion.items.every import Every
    from onion.items.for_task import ForTask
    from onion.items.forward import Forward
    from onion.items.freeze import Freeze, Unfreeze
    from onion.items.frozen import Frozen
    from onion.items.gradient_machine import GradientMachine
    from onion.items.into_batch import IntoBatch
    from onion.items.limit import Limit
    from onion.items.logger import Logger
    from onion.items.loss_scale import LossScale
    from onion.items.mailbox import Mailbox
    from onion.items.mixed_precision import MixedPrecision
    from onion.items.moving_average import MovingAverage
    from onion.items.nan_guard import NanGuard
    from onion.items.observer import Observer
    from onion.items.parameter_updater import ParameterUpdater
    from onion.items.preemption import Preemption
    from onion.items.progress import Progress
    from onion.items.repeat import Repeat
    from onion.items.saver import Saver
    from onion.items.signals import Signals
    from onion.items.skip_if import SkipIf
    from onion.items.slot import Slot
    from onion.items.split_on_memory_error import SplitOnMemoryError
    from onion.items.task import Task
    from onion.items.task_sampler import TaskSampler
    from onion.items.tensorboard import TensorBoard
    from onion.items.tester import Tester
    from onion.items.trial import Trial

__version__ = "0.1.0"

ITEMS = {
    "Accumulate": "accumulate",
    "Averaged": "averaged",
    "DataProvider": "data_provider",
    "EarlyStop": "early_stop",
    "Evaluator": "evaluator",
    "Every": "every",
    "ForTask": "for_task",
    "Forward": "forward",
    "Freeze": "freeze",
    "Frozen": "frozen",
    "GradientMachine": "gradient_machine",
    "IntoBatch": "into_batch",
    "Limit": "limit",
    "Logger": "logger",
    "LossScale": "loss_scale",
    "Mailbox": "mailbox",
    "MixedPrecision": "mixed_precision",
    "MovingAverage": "moving_average",
    "NanGuard": "nan_guard",
    "Observer": "observer",
    "ParameterUpdater": "parameter_updater",
    "Preemption": "preemption",
    "Progress": "progress",
    "Repeat": "repeat",
    "Saver": "saver",
    "Signals": "signals",
    "SkipIf": "skip_if",
    "Slot": "slot",
    "SplitOnMemoryError": "split_on_memory_error",
    "Task": "task",
    "TaskSampler": "task_sampler",
    "TensorBoard": "tensorboard",
    "Tester": "tester",
    "Trial": "trial",
    "Unfreeze": "freeze",
}
"""The standard items and the files in ``onion/items`` they stand in; each is imported when it is first asked for."""

__all__ = [
    "Accumulate",
    "Averaged",
    "CheckpointError",
    "CompositionError",
    "DataError",
    "DataProvider",
    "EarlyStop",
    "Evaluator",
    "Every",
    "ForTask",
    "Forward",
    "Freeze",
    "Frozen",
    "GradientMachine",
    "HookError",
    "IntoBatch",
    "Limit",
    "Logger",
    "LossScale",
    "Mailbox",
    "MixedPrecision",
    "MovingAverage",
    "NanGuard",
    "Observer",
    "OnionError",
    "ParameterUpdater",
    "Preemption",
    "Progress",
    "Repeat",
    "Runner",
    "RunnerItem",
    "Saver",
    "Signals",
    "SkipIf",
    "Slot",
    "SplitOnMemoryError",
    "State",
    "Task",
    "TaskSampler",
    "TensorBoard",
    "Tester",
    "Trial",
    "Unfreeze",
    "Way",
    "WeightsError",
]


def __getattr__(name: str) -> Any:
    if name not in ITEMS:
        raise AttributeError(f"module 'onion' has no attribute {name!r}")
    return getattr(import_module(f"onion.items.{ITEMS[name]}"), name)


check_system()
ignore_missing_ccache()
set_up_math_library()
