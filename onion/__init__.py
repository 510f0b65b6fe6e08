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

from typing import TYPE_CHECKING

from onion.device import ignore_missing_ccache
from onion.engine.item import HookIterator, RunnerItem
from onion.engine.runner import Runner
from onion.engine.state import State
from onion.errors import (
    CheckpointError,
    CompositionError,
    DataError,
    DivergedError,
    HookError,
    OnionError,
    RankError,
    WeightsError,
)
from onion.host.math_library import set_up_math_library
from onion.host.operating_system import check_system
from onion.lazy import lazily

if TYPE_CHECKING:
    from onion.items.accumulate import Accumulate
    from onion.items.data_provider import DataProvider
    from onion.items.early_stopping import EarlyStopping
    from onion.items.evaluator import Evaluator
    from onion.items.every import Every
    from onion.items.forward import Forward
    from onion.items.freeze import Freeze, Unfreeze
    from onion.items.gradient_machine import GradientMachine
    from onion.items.learning_rate_finder import LearningRateFinder
    from onion.items.logger import Logger
    from onion.items.mailbox import Mailbox
    from onion.items.mixed_precision import MixedPrecision
    from onion.items.moving_average import MovingAverage
    from onion.items.nan_guard import NanGuard
    from onion.items.observer import Observer
    from onion.items.outputs_to_batch import OutputsToBatch
    from onion.items.parameter_updater import ParameterUpdater
    from onion.items.preemption import Preemption
    from onion.items.progress import Progress
    from onion.items.prune import Prune
    from onion.items.repeat import Repeat
    from onion.items.saver import Saver
    from onion.items.signals import Signals
    from onion.items.skip_if import SkipIf
    from onion.items.slot import Slot
    from onion.items.split_on_memory_error import SplitOnMemoryError
    from onion.items.stop_gradient import StopGradient
    from onion.items.tester import Tester
    from onion.items.time_limit import TimeLimit
    from onion.items.tracker import Tracker
    from onion.items.trial import Trial
    from onion.items.use_average import UseAverage
    from onion.monitoring.writers.mlflow import MLflowWriter
    from onion.monitoring.writers.tensorboard import TensorBoardWriter
    from onion.monitoring.writers.visualdl import VisualDLWriter
    from onion.monitoring.writers.wandb import WandbWriter
    from onion.multitask.for_task import ForTask
    from onion.multitask.task_data import TaskData
    from onion.multitask.task_sampler import TaskSampler
    from onion.tasks.loading import load
    from onion.training.loss_scale import LossScale

__version__ = "0.1.0"

ITEMS = {
    "Accumulate": "items.accumulate",
    "DataProvider": "items.data_provider",
    "EarlyStopping": "items.early_stopping",
    "Evaluator": "items.evaluator",
    "Every": "items.every",
    "ForTask": "multitask.for_task",
    "Forward": "items.forward",
    "Freeze": "items.freeze",
    "GradientMachine": "items.gradient_machine",
    "LearningRateFinder": "items.learning_rate_finder",
    "Logger": "items.logger",
    "LossScale": "training.loss_scale",
    "MLflowWriter": "monitoring.writers.mlflow",
    "Mailbox": "items.mailbox",
    "MixedPrecision": "items.mixed_precision",
    "MovingAverage": "items.moving_average",
    "NanGuard": "items.nan_guard",
    "Observer": "items.observer",
    "OutputsToBatch": "items.outputs_to_batch",
    "ParameterUpdater": "items.parameter_updater",
    "Preemption": "items.preemption",
    "Progress": "items.progress",
    "Prune": "items.prune",
    "Repeat": "items.repeat",
    "Saver": "items.saver",
    "Signals": "items.signals",
    "SkipIf": "items.skip_if",
    "Slot": "items.slot",
    "SplitOnMemoryError": "items.split_on_memory_error",
    "StopGradient": "items.stop_gradient",
    "TaskData": "multitask.task_data",
    "TaskSampler": "multitask.task_sampler",
    "TensorBoardWriter": "monitoring.writers.tensorboard",
    "Tester": "items.tester",
    "TimeLimit": "items.time_limit",
    "Tracker": "items.tracker",
    "Trial": "items.trial",
    "Unfreeze": "items.freeze",
    "UseAverage": "items.use_average",
    "VisualDLWriter": "monitoring.writers.visualdl",
    "WandbWriter": "monitoring.writers.wandb",
}
"""The standard items and their modules in ``onion``; each is imported with its first use."""

FUNCTIONS = {"load": "tasks.loading"}
"""What is imported with its first use besides."""

__all__ = [
    "Accumulate",
    "CheckpointError",
    "CompositionError",
    "DataError",
    "DataProvider",
    "DivergedError",
    "EarlyStopping",
    "Evaluator",
    "Every",
    "ForTask",
    "Forward",
    "Freeze",
    "GradientMachine",
    "HookError",
    "HookIterator",
    "LearningRateFinder",
    "Logger",
    "LossScale",
    "MLflowWriter",
    "Mailbox",
    "MixedPrecision",
    "MovingAverage",
    "NanGuard",
    "Observer",
    "OnionError",
    "OutputsToBatch",
    "ParameterUpdater",
    "Preemption",
    "Progress",
    "Prune",
    "RankError",
    "Repeat",
    "Runner",
    "RunnerItem",
    "Saver",
    "Signals",
    "SkipIf",
    "Slot",
    "SplitOnMemoryError",
    "State",
    "StopGradient",
    "TaskData",
    "TaskSampler",
    "TensorBoardWriter",
    "Tester",
    "TimeLimit",
    "Tracker",
    "Trial",
    "Unfreeze",
    "UseAverage",
    "VisualDLWriter",
    "WandbWriter",
    "WeightsError",
    "load",
]


__getattr__ = lazily(__name__, {**ITEMS, **FUNCTIONS})

check_system()
ignore_missing_ccache()
set_up_math_library()
