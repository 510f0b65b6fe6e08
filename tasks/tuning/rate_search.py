"""The learning-rate range test before a fine-tuning."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import attrs

from onion import (
    EarlyStopping,
    LearningRateFinder,
    Logger,
    NanGuard,
    Runner,
    RunnerItem,
    Saver,
    Signals,
    Tester,
    Tracker,
)
from onion.errors import DataError
from onion.tasks.finetune.adapters import FrozenEncoder
from onion.tasks.finetune.config_file import resolve
from onion.tasks.finetune.fine_tune import Trained, prepare, returning
from onion.tasks.finetune.multitask_settings import MultiTaskSettings
from onion.tasks.finetune.run_files import write_text
from onion.tasks.finetune.run_folder import RunFolder
from onion.tasks.finetune.settings import Settings
from onion.tasks.tuning.curve import Curve, curves
from onion.text_formats import csv_lines

TABLE_FILE, PICTURE_FILE = "lr_find.csv", "lr_find.svg"
LEFT_OUT: tuple[type[RunnerItem], ...] = (
    *(RunFolder, FrozenEncoder, Saver, EarlyStopping, Tracker, Logger, Tester, NanGuard),
)
"""Items of a training that the test runs without: what writes, tests, or minds that the loss diverges."""


def find_learning_rate(
    settings: Settings | MultiTaskSettings | Mapping[str, Any],
    output: str | Path,
    *,
    first: float = 1e-7,
    last: float = 1.0,
    steps: int = 100,
    quiet: bool = False,
) -> Trained:
    """Suggest a learning rate for a training by a ``LearningRateFinder``.

    The network is a fresh one, and nothing of it is kept: a training with these settings starts from the same weights
    as without this call. The folder gets ``lr_find.csv`` (rate, loss and averaged loss of each update) and
    ``lr_find.svg``.

    Args:
        settings: of the training, of one task; its learning rate, schedule and warm-up are not used. A mapping is read
            like a config file, and needs no ``dev``.
        output: the folder.
        first: the first learning rate. Default 1e-7.
        last: the last one. Default 1.
        steps: updates from the first to the last. Default 100.
        quiet: whether the progress bar is hidden. Default False.

    Returns:
        The suggestion as ``learning_rate`` (None: the loss does not fall), the number of steps, whether the loss
        diverged; the number of the signal, if one came.

    Raises:
        OnionError: a file, the weights, a setting or the folder is invalid.
    """
    begun, output = perf_counter(), Path(output)
    if output.exists() and not output.is_dir():
        raise DataError(f"{output} is a file; choose a folder with --output.")
    finder = LearningRateFinder(first, last, steps)
    base = resolve(_with_dev(settings)) if isinstance(settings, Mapping) else settings
    if isinstance(base, MultiTaskSettings):
        raise DataError("the range test follows the loss of one task; give it the settings of one, without tasks")
    constant = attrs.evolve(base, schedule="constant", warmup_ratio=0.0, warmup_steps=None)
    runner = returning(range_test(prepare(constant).onion(output), finder), quiet)
    state = runner.run(steps=steps)
    report = {
        "learning_rate": finder.suggestion,
        "steps": state.step,
        "diverged": finder.diverged,
        "seconds": round(perf_counter() - begun, 1),
        "output": str(output),
    }
    if runner[Signals].received is None:
        _write(finder, output)
    return Trained(report, runner[Signals].received)


def _with_dev(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name the training file as the dev file where there is none: a training has one, but nothing is tested here."""
    return {"dev": settings["train"], **settings} if "train" in settings else settings


def range_test(training: Runner, finder: LearningRateFinder) -> Runner:
    """Return a training without what writes or tests, and with a finder outermost of what is left of its loop."""
    kept = training.without(*(kind for kind in LEFT_OUT if kind in training))
    return kept.insert_after(Signals, finder)


def _write(finder: LearningRateFinder, output: Path) -> None:
    rows = [
        {"learning_rate": rate, "loss": loss, "smoothed": smoothed}
        for rate, loss, smoothed in zip(finder.rates, finder.losses, finder.smoothed, strict=True)
    ]
    write_text(output / TABLE_FILE, "".join(f"{line}\n" for line in csv_lines(rows)))
    shown = [Curve("loss", finder.losses, "#bdbdbd"), Curve("averaged", finder.smoothed, "#7e57c2")]
    write_text(output / PICTURE_FILE, curves(finder.rates, shown, "learning rate", finder.suggestion))
