"""The Trackers that the setting ``loggers`` asks for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from onion import MLflowWriter, TensorBoardWriter, Tracker, VisualDLWriter, WandbWriter
from onion.monitoring.writers.writer import Writer
from onion.tasks.finetune.loop_settings import LoopSettings

PROJECT = "onion"
"""The project of W&B and the experiment of MLflow, unless their environment variables name another one."""

WRITERS: dict[str, Callable[[Path], Writer]] = {
    "tensorboard": lambda output: TensorBoardWriter(output / "tensorboard"),
    "visualdl": lambda output: VisualDLWriter(output / "visualdl"),
    "wandb": lambda output: WandbWriter(dir=str(output), project=PROJECT, name=output.name),
    "mlflow": lambda output: MLflowWriter(output / "mlflow", run=output.name),
}
"""The writers by the names in ``settings.LOGGERS``; each takes the folder of the training."""


def trackers(settings: LoopSettings, output: Path) -> list[Tracker]:
    """Return a Tracker for each logger that the settings of a training name; their files are in its folder."""
    return [Tracker(WRITERS[name](output), settings.log_every, settings.as_file()) for name in settings.loggers]
