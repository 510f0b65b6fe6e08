"""Fine-tuning: a ready runner for any task, and the job behind ``onion train``."""

from __future__ import annotations

import random
from pathlib import Path
from time import perf_counter
from typing import Any

import attrs
import numpy as np
import paddle
from paddle import nn

from onion import Progress, Runner, Signals
from onion.checkpointing.run_state import best_checkpoint
from onion.errors import DataError
from onion.models.tokenizer import Tokenizer
from onion.paths import anchored
from onion.schedules import Passes
from onion.tasks.data.features.cache import cached_features, fitted_task
from onion.tasks.data.features.examples import Examples
from onion.tasks.data.features.stream import FeatureStream
from onion.tasks.data.texts import check_max_length
from onion.tasks.finetune.initialization import Initialization
from onion.tasks.finetune.optimization import fine_tuning_optimizer
from onion.tasks.finetune.recipes import best_figure, evaluation_onion, training_onion
from onion.tasks.finetune.run_folder import RunFolder
from onion.tasks.finetune.settings import Settings
from onion.tasks.registry import get_task, register
from onion.tasks.task import Task


@attrs.frozen
class Trained:
    """The result of a training job.

    Attributes:
        report: figures for one JSON line.
        signal: the number of the signal that ended it early, or None.
    """

    report: dict[str, Any]
    signal: int | None


def fine_tune(
    task: str | Task,
    train: str | Path,
    dev: str | Path,
    output: str | Path,
    *,
    force_resume: bool = False,
    **settings: Any,
) -> Runner:
    """Return the runner that fine-tunes an encoder; nothing is run, and nothing written except cached features.

    After the run, ``onion evaluate``, ``onion predict`` and ``--init-from`` accept the output folder.

        runner = fine_tune("classification", "train.tsv", "dev.tsv", "run", options={"max_length": 64})
        runner.insert_before(ParameterUpdater, MyItem()).run(passes=3)

    Args:
        task: its name, or a task of your own with its settings, which is registered in ``onion.tasks.registry.TASKS``
            (register it, too, where the results are read).
        train: the training file.
        dev: the file to test on while training.
        output: the folder for checkpoints and the log.
        force_resume: resume in the folder even if its training differs; the differences are logged. Default False.
        settings: those of ``onion.tasks.finetune.settings.Settings``. The learning rate is scheduled for ``passes``, in
            updates of the runner that is run (a quarter with ``Accumulate(4)``).

    Raises:
        OnionError: a file, the weights or a setting are invalid.
    """
    known = [name for name in attrs.fields_dict(Settings) if name not in ("task", "train", "dev")]
    unknown = [name for name in settings if name not in known]
    if unknown:
        told = "those of the task belong in options={...}"
        raise DataError(f"unknown setting {unknown[0]!r}; a training has {', '.join(known)}; {told}")
    own, name = (None, task) if isinstance(task, str) else (task, register(task))
    job = Job.prepare(Settings(task=name, train=str(train), dev=str(dev), **settings), own)
    return job.onion(anchored(output), force_resume)


@attrs.frozen
class Job:
    """Everything that a training needs.

    Attributes:
        settings: the settings.
        task: fitted to the training file.
        tokenizer: of the encoder.
        network: with its initial weights.
        train_set: the training examples.
        dev_set: the examples to test on.
    """

    settings: Settings
    task: Task
    tokenizer: Tokenizer
    network: nn.Layer
    train_set: Examples | FeatureStream
    dev_set: Examples

    @classmethod
    def prepare(cls, settings: Settings, task: Task | None = None) -> Job:
        """Read and create everything, and seed all random generators.

        Args:
            settings: the settings.
            task: replaces the task named in the settings.

        Raises:
            OnionError: a file, the weights or a setting are invalid.
        """
        task = task or get_task(settings.task, settings.options)
        start = Initialization.of(settings)
        check_max_length(task.max_length, start.config().max_length)
        tokenizer = start.tokenizer()
        task = fitted_task(task, settings.train)
        train_set = (FeatureStream if settings.stream else cached_features)(task, settings.train, tokenizer)
        dev_set = cached_features(task, settings.dev, tokenizer)
        seed_everything(settings.seed)
        return cls(settings, task, tokenizer, start.network(task), train_set, dev_set)

    def onion(self, output: Path, force_resume: bool = False) -> Runner:
        """Compose the training."""
        settings = self.settings
        steps_per_pass = -(-len(self.train_set) // settings.batch_size)
        optimizer = fine_tuning_optimizer(
            self.network,
            settings.learning_rate,
            Passes(settings.passes, steps_per_pass),
            warmup_ratio=settings.warmup_ratio,
            weight_decay=settings.weight_decay,
            max_grad_norm=settings.max_grad_norm,
        )
        pad_id = self.tokenizer.pad_id
        metric = self.task.metric(settings.dev)
        monitor, mode = best_figure(metric, settings.monitor or self.task.monitor)
        eval_items = self.task.eval_items(self.tokenizer, settings.seed)
        test = evaluation_onion(self.task, self.network, self.dev_set, metric, pad_id, eval_items)
        training = training_onion(
            self.task,
            self.network,
            optimizer,
            self.train_set,
            test,
            output,
            monitor=monitor,
            mode=mode,
            batch_size=settings.batch_size,
            seed=settings.seed,
            test_every=settings.test_every or max(1, steps_per_pass // 4),
            pad_id=pad_id,
            train_items=self.task.train_items(self.tokenizer, settings.seed),
            resume="force" if force_resume else True,
        )
        notes = {settings.train: self.train_set.notes, settings.dev: self.dev_set.notes}
        config = self.network.encoder.config
        folder = RunFolder(output, settings, self.task, self.tokenizer, config, notes, force_resume)
        return Runner(folder, *training.items)


def train(settings: Settings, output: Path, force_resume: bool = False, quiet: bool = False) -> Trained:
    """Fine-tune an encoder; ``output`` then has checkpoints, log, tokenizer, the task's record, drawings of the runner.

    The same call resumes an interrupted training; a call with other settings does so only with ``force_resume``.
    ``quiet`` hides the progress bar.

    Raises:
        OnionError: a file, the weights or the folder are invalid; no partial output is left.
    """
    begun, folder = perf_counter(), anchored(output)
    job = Job.prepare(settings)
    runner = job.onion(folder, force_resume)
    runner[Progress].quiet = quiet
    runner[RunFolder].look()
    print(runner, flush=True)
    state = runner.run(passes=settings.passes)
    best = best_checkpoint(folder)
    report = {
        "step": state.step,
        **{name: best.run["metrics"][name] for name in sorted(best.run["metrics"])},
        "best_step": best.step,
        **job.task.baseline(job.dev_set),
        "seconds": round(perf_counter() - begun, 1),
        "output": str(output),
    }
    return Trained(report, runner[Signals].received)


def seed_everything(seed: int) -> None:
    """Seed Python's, numpy's and Paddle's random generators."""
    random.seed(seed)
    np.random.seed(seed)
    paddle.seed(seed)
