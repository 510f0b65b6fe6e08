"""Fine-tuning: a ready runner for any task, and the job behind ``onion train``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import attrs
from paddle import nn

from onion import MovingAverage, Progress, Runner, Saver, Signals, Tester
from onion.checkpointing.run_state import best_checkpoint
from onion.distributed.process_group import first_rank_first
from onion.errors import DataError
from onion.host import launch
from onion.messages import shown
from onion.models.lora import TrainedPart
from onion.models.tokenizer import Tokenizer
from onion.paths import anchored
from onion.tasks.data.data_files import DataFiles, tested_on
from onion.tasks.data.features.cache import cached_features, fitted_task
from onion.tasks.data.features.examples import Examples
from onion.tasks.data.features.stream import FeatureStream
from onion.tasks.data.prepared import named
from onion.tasks.data.texts import check_max_length
from onion.tasks.finetune.adapters import FrozenEncoder, add_adapters
from onion.tasks.finetune.initialization import Initialization
from onion.tasks.finetune.multitask import MultiTaskJob
from onion.tasks.finetune.multitask_settings import MultiTaskSettings
from onion.tasks.finetune.optimization import optimizer_for
from onion.tasks.finetune.recipes import (
    PREFIX,
    best_figure,
    evaluation_onion,
    in_processes,
    test_interval,
    training_data,
    training_onion,
)
from onion.tasks.finetune.run_folder import RunFolder
from onion.tasks.finetune.seeding import seed_everything
from onion.tasks.finetune.settings import Settings
from onion.tasks.registry import get_task, register
from onion.tasks.task import Task


@attrs.frozen
class Trained:
    """The result of a training job.

    Attributes:
        report: figures for one JSON line; of several processes the first has them all.
        signal: the number of the signal that ended it early, or None.
    """

    report: dict[str, Any]
    signal: int | None


def fine_tune(
    task: str | Task | Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]],
    train: str | Path | None = None,
    dev: str | Path | None = None,
    output: str | Path | None = None,
    *,
    force_resume: bool = False,
    **settings: Any,
) -> Runner:
    """Return the runner that fine-tunes an encoder; nothing is run, and nothing written except cached features.

    After the run, ``onion evaluate``, ``onion predict`` and ``--init-from`` accept the output folder.

        runner = fine_tune("classification", "train.tsv", "dev.tsv", "run", options={"max_length": 64})
        runner.insert_before(ParameterUpdater, MyItem()).run(passes=3)

    Several tasks over one encoder, each with its settings as in the ``tasks`` of a config file
    (``onion.tasks.finetune.multitask_settings.TaskSettings``):

        tasks = {
            "mrpc": {"task": "classification", "train": "mrpc/train.tsv", "dev": "mrpc/dev.tsv"},
            "rte": {"task": "classification", "train": "rte/train.tsv", "mix_ratio": 0.5, "target": False},
        }
        fine_tune(tasks, output="run", passes=3).run(passes=3)

    Args:
        task: its name; or a task of your own, with its settings (it is registered under its name, as it has to be
            wherever its results are read); or several tasks, by name or as a list of settings with a ``name`` each.
        train: the training file, of one task.
        dev: the file to test on while training, of one task.
        output: the folder for checkpoints and the log.
        force_resume: resume in the folder even if its training differs; the differences are logged. Default False.
        settings: any of ``onion.tasks.finetune.settings.Settings``, or of ``MultiTaskSettings``; ``passes`` is what the
            learning rate is planned for, in the updates that the onion makes which is run, or else ``max_steps``.

    Raises:
        OnionError: a file, the weights or a setting are invalid.
    """
    if output is None:
        raise DataError("fine_tune needs output=..., the folder for checkpoints and the log")
    job: Job | MultiTaskJob
    if isinstance(task, str | Task):
        if train is None or dev is None:
            raise DataError("fine_tune needs a training file and a dev file; several tasks are a mapping by name")
        own, name = (None, task) if isinstance(task, str) else (task, register(task))
        _refuse_unknown(settings, Settings, ("task", "train", "dev"))
        job = Job.prepare(Settings(task=name, train=str(train), dev=str(dev), **settings), own)
    else:
        if train is not None or dev is not None:
            raise DataError("fine_tune: each of several tasks has its own train and dev; write them into its settings")
        _refuse_unknown(settings, MultiTaskSettings, ("tasks",))
        job = MultiTaskJob.prepare(MultiTaskSettings(tasks=_by_name(task), **settings))
    return job.onion(anchored(output), force_resume)


def _refuse_unknown(settings: Mapping[str, Any], kind: type, given: Collection[str]) -> None:
    known = [name for name in attrs.fields_dict(kind) if name not in given]
    unknown = [name for name in settings if name not in known]
    if unknown:
        told = f"those of the task belong in {'options={...}' if kind is Settings else 'its entry'}"
        raise DataError(f"unknown setting {unknown[0]!r}; a training has {', '.join(known)}; {told}")


def _by_name(tasks: Mapping[str, Mapping[str, Any]] | Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    if isinstance(tasks, Mapping):
        return tasks
    named = [(each.get("name", each.get("task")), each) for each in tasks]
    names = [name for name, _ in named]
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"two tasks are called {shown(twice[0])}; give each a name of its own: {{'name': ...}}")
    return {str(name): {key: value for key, value in each.items() if key != "name"} for name, each in named}


@attrs.frozen
class Job:
    """Everything that a training needs.

    Attributes:
        settings: what was asked for.
        files: what it reads.
        task: fitted to the training file.
        tokenizer: of the encoder.
        network: with its initial weights.
        train_set: the training examples.
        dev_set: the examples to test on.
    """

    settings: Settings
    files: DataFiles
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
        files = DataFiles.of(settings.train, settings.dev, settings.columns, settings.seed, task.together)
        assert files.dev is not None
        with named(files.train, settings.train):
            task = fitted_task(task, files.train)
        train_set = (FeatureStream if settings.stream else cached_features)(task, files.train, tokenizer)
        dev_set = cached_features(task, files.dev, tokenizer)
        seed_everything(settings.seed)
        network = start.network(task)
        network.encoder.gradient_checkpointing = settings.gradient_checkpointing
        add_adapters(network, settings)
        return cls(settings, files, task, tokenizer, network, train_set, dev_set)

    def baseline(self) -> dict[str, float]:
        """Return figures that learning nothing would reach on the dev file."""
        return self.task.baseline(self.dev_set)

    def onion(self, output: Path, force_resume: bool = False) -> Runner:
        """Compose the training."""
        settings, pad_id = self.settings, self.tokenizer.pad_id
        batches = -(-len(self.train_set) // settings.batch_size)
        metric = self.task.metric(str(self.files.dev))
        monitor, mode = best_figure(metric, settings.monitor or self.task.monitor)
        network = TrainedPart(self.network) if settings.lora_rank else self.network
        average = MovingAverage(network, settings.ema_decay) if settings.ema_decay else None
        test = evaluation_onion(
            self.task,
            self.network,
            self.dev_set,
            metric,
            pad_id,
            self.task.eval_items(self.tokenizer, settings.seed),
            batch_size=settings.test_batch_size,
            average=average,
        )
        test_every = test_interval(settings, batches)
        data = training_data(
            self.task,
            self.train_set,
            settings.batch_size,
            settings.seed,
            pad_id,
            shuffle_buffer=settings.shuffle_buffer,
            class_balanced=settings.class_balanced,
        )
        training = training_onion(
            network,
            optimizer_for(self.network, settings, batches),
            data,
            [Tester(test, every=test_every, name="dev")],
            output,
            settings,
            test_every=test_every,
            monitor=f"{PREFIX}{monitor}",
            mode=mode,
            train_items=self.task.train_items(self.tokenizer, settings.seed),
            average=average,
            resume="force" if force_resume else True,
        )
        notes = {settings.train: self.train_set.notes, tested_on(settings.train, settings.dev): self.dev_set.notes}
        config = self.network.encoder.config
        folder = RunFolder(output, settings, self.task, self.files, self.tokenizer, config, notes, force_resume)
        frozen = [FrozenEncoder(output, self.network)] if settings.lora_rank else []
        return in_processes(Runner(folder, *frozen, *training.items), settings)


def prepare(settings: Settings | MultiTaskSettings) -> Job | MultiTaskJob:
    """Read and make all that a training needs.

    Raises:
        OnionError: a file, the weights or a setting are not what they should be.
    """
    return MultiTaskJob.prepare(settings) if isinstance(settings, MultiTaskSettings) else Job.prepare(settings)


def train(
    settings: Settings | MultiTaskSettings, output: Path, force_resume: bool = False, quiet: bool = False
) -> Trained:
    """Fine-tune an encoder; ``output`` then holds checkpoints, log, tokenizer, the task's record, the onion's drawing.

    The same call resumes an interrupted training; a call with other settings does so only with ``force_resume``.
    ``quiet`` hides the progress bar.

    Raises:
        OnionError: a file, the weights or the folder are invalid; no partial output is left.
    """
    begun = perf_counter()
    with first_rank_first():  # the others find its features in the cache
        job = prepare(settings)
    runner = returning(job.onion(anchored(output), force_resume), quiet)
    if launch.rank() == 0:
        runner[RunFolder].look()
        print(runner, flush=True)
    return completed(job, runner, begun)


def returning(runner: Runner, quiet: bool = False) -> Runner:
    """Let the run of a training return after a signal, since there are figures to report, and hide its progress bar.

    Args:
        runner: of ``job.onion``, or derived from it; it is changed, and returned.
        quiet: whether the progress bar is hidden. Default False.
    """
    runner[Signals].leave, runner[Progress].quiet = False, quiet
    return runner


def completed(job: Job | MultiTaskJob, runner: Runner, begun: float) -> Trained:
    """Run the onion of a job to its end, or go on with it; return the figures of the best checkpoint.

    Args:
        job: the training.
        runner: of :func:`returning`.
        begun: when the job began, by ``perf_counter``.
    """
    state = runner.run(*job.settings.end)
    if launch.rank() > 0:
        return Trained({"step": state.step}, runner[Signals].received)
    best = best_checkpoint(runner[Saver].folder)
    report = {
        "step": state.step,
        **{name: best.run["metrics"][name] for name in sorted(best.run["metrics"])},
        "best_step": best.step,
        **job.baseline(),
        "seconds": round(perf_counter() - begun, 1),
        "output": str(runner[RunFolder].output),
    }
    return Trained(report, runner[Signals].received)
