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

from onion.device import set_up_math_library
from onion.errors import CheckpointError, CompositionError, DataError, HookError, OnionError, WeightsError
from onion.item import RunnerItem, Way
from onion.runner import Runner
from onion.state import State

if TYPE_CHECKING:
    from onion.items.data_provider import DataProvider
    from onion.items.early_stop import EarlyStop
    from onion.items.evaluator import Evaluator
    from onion.items.forward import Forward
    from onion.items.gradient_machine import GradientMachine
    from onion.items.logger import Logger
    from onion.items.observer import Observer
    from onion.items.parameter_updater import ParameterUpdater
    from onion.items.progress import Progress
    from onion.items.saver import Saver
    from onion.items.signals import Signals
    from onion.items.tensorboard import TensorBoard
    from onion.items.tester import Tester

__version__ = "0.1.0"

ITEMS = {
    "DataProvider": "data_provider",
    "EarlyStop": "early_stop",
    "Evaluator": "evaluator",
    "Forward": "forward",
    "GradientMachine": "gradient_machine",
    "Logger": "logger",
    "Observer": "observer",
    "ParameterUpdater": "parameter_updater",
    "Progress": "progress",
    "Saver": "saver",
    "Signals": "signals",
    "TensorBoard": "tensorboard",
    "Tester": "tester",
}
"""The standard items and the files in ``onion/items`` they stand in; each is imported when it is first asked for."""

__all__ = [
    "CheckpointError",
    "CompositionError",
    "DataError",
    "DataProvider",
    "EarlyStop",
    "Evaluator",
    "Forward",
    "GradientMachine",
    "HookError",
    "Logger",
    "Observer",
    "OnionError",
    "ParameterUpdater",
    "Progress",
    "Runner",
    "RunnerItem",
    "Saver",
    "Signals",
    "State",
    "TensorBoard",
    "Tester",
    "Way",
    "WeightsError",
]


def __getattr__(name: str) -> Any:
    if name not in ITEMS:
        raise AttributeError(f"module 'onion' has no attribute {name!r}")
    return getattr(import_module(f"onion.items.{ITEMS[name]}"), name)


set_up_math_library()
