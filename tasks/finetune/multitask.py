"""A training of several tasks over one encoder: their data, their networks, and the onion of it all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from onion import ForTask, Forward, MovingAverage, OutputsToBatch, Runner, RunnerItem, TaskSampler, Tester
from onion.engine.periodic import Interval
from onion.errors import DataError
from onion.messages import listed, shown
from onion.models.lora import TrainedPart
from onion.models.tokenizer import Tokenizer
from onion.monitoring.best import Mode
from onion.multitask import strategies
from onion.multitask.task_data import TaskData, plan
from onion.tasks.data.data_files import DataFiles, tested_on
from onion.tasks.data.features.cache import cached_features, fitted_task
from onion.tasks.data.features.examples import Examples
from onion.tasks.data.features.hashing import digest_of_tokenizer
from onion.tasks.data.features.stream import FeatureStream
from onion.tasks.data.prepared import named
from onion.tasks.data.texts import check_max_length
from onion.tasks.finetune.adapters import FrozenEncoder, add_adapters
from onion.tasks.finetune.initialization import Initialization
from onion.tasks.finetune.multitask_settings import MultiTaskSettings, TaskSettings
from onion.tasks.finetune.optimization import optimizer_for, set_head_rates
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.recipes import (
    best_figure,
    evaluation_onion,
    in_processes,
    test_interval,
    training_data,
    training_onion,
)
from onion.tasks.finetune.run_folder import RunFolder
from onion.tasks.finetune.seeding import seed_everything
from onion.tasks.networks.distillation import TEACHER, SoftTargetsLoss
from onion.tasks.networks.multi_head import MultiHead
from onion.tasks.registry import get_task
from onion.tasks.task import Task

TAUGHT = ("classification", "matching")
"""The kinds of task whose outputs are logits of one row an example, which a teacher's can be compared with."""


@attrs.frozen
class Part:
    """One task, read and made.

    Attributes:
        settings: what was asked for.
        files: what it reads.
        task: fitted to its training file.
        train_set: what is learned from.
        dev_set: what is tested on, or None.
        teacher: the run that it learns from, or None.
    """

    settings: TaskSettings
    files: DataFiles
    task: Task
    train_set: Examples | FeatureStream
    dev_set: Examples | None
    teacher: Predictor | None

    @classmethod
    def prepare(cls, name: str, settings: TaskSettings, start: Initialization, tokenizer: Tokenizer, seed: int) -> Part:
        """Read the data of a task; the seed is that of a share of them to test on.

        Raises:
            OnionError: a file, the teacher or a setting are not what they should be.
        """
        teacher = None if settings.teacher is None else _teacher(name, settings, tokenizer)
        options = dict(settings.options)
        if teacher is not None:
            options.setdefault("labels", list(_labels(teacher.task)))  # a label is the same logit for both
        try:
            task = get_task(settings.task, options)
        except DataError as error:
            raise DataError(f"tasks: {shown(name)}: {error}") from None
        check_max_length(task.max_length, start.config().max_length)
        files = DataFiles.of(settings.train, settings.dev, settings.columns, seed, task.together)
        with named(files.train, settings.train):
            task = fitted_task(task, files.train)
        if teacher is not None and _labels(task) != _labels(teacher.task):
            raise DataError(f"tasks: {shown(name)}: its labels are not those of the teacher; leave them out")
        read = FeatureStream if settings.stream else cached_features
        dev_set = None if files.dev is None else cached_features(task, files.dev, tokenizer)
        return cls(settings, files, task, read(task, files.train, tokenizer), dev_set, teacher)


def _teacher(name: str, settings: TaskSettings, tokenizer: Tokenizer) -> Predictor:
    if settings.task not in TAUGHT:
        raise DataError(f"tasks: {shown(name)}: a teacher is for the kinds {', '.join(TAUGHT)}, not {settings.task}")
    teacher = Predictor.load(Path(str(settings.teacher)))
    if teacher.task.name != settings.task:
        raise DataError(f"tasks: {shown(name)}: the teacher {settings.teacher} is of the kind {teacher.task.name}")
    if digest_of_tokenizer(teacher.tokenizer) != digest_of_tokenizer(tokenizer):
        raise DataError(
            f"tasks: {shown(name)}: the teacher {settings.teacher} has another tokenizer, so it cannot read the same "
            "batches; use an encoder of its vocabulary"
        )
    return teacher


@attrs.frozen
class MultiTaskJob:
    """All that a training of several tasks needs, read and made.

    Attributes:
        settings: what was asked for.
        parts: the tasks by name.
        tokenizer: of the encoder.
        network: with the weights it begins with.
    """

    settings: MultiTaskSettings
    parts: Mapping[str, Part]
    tokenizer: Tokenizer
    network: MultiHead

    @classmethod
    def prepare(cls, settings: MultiTaskSettings) -> MultiTaskJob:
        """Read and make it all, after seeding every random generator.

        Raises:
            OnionError: a file, the weights or a setting are not what they should be.
        """
        start = Initialization.of(settings)
        tokenizer = start.tokenizer()
        parts = {
            name: Part.prepare(name, task, start, tokenizer, settings.seed) for name, task in settings.tasks.items()
        }
        seed_everything(settings.seed)
        network = _network(settings, parts, start)
        network.encoder.gradient_checkpointing = settings.gradient_checkpointing
        add_adapters(network, settings)
        return cls(settings, parts, tokenizer, network)

    def baseline(self) -> dict[str, float]:
        """Return figures that learning nothing would reach on the dev files, by task."""
        return {
            f"{name}.{figure}": value
            for name, part in self.parts.items()
            if part.dev_set is not None
            for figure, value in part.task.baseline(part.dev_set).items()
        }

    def onion(self, output: Path, force_resume: bool = False) -> Runner:
        """Compose the training."""
        settings = self.settings
        data = {name: self._data(part) for name, part in self.parts.items()}
        steps = sum(plan(data, settings.reference_task, 1).values())
        optimizer = optimizer_for(self.network, settings, steps)
        set_head_rates(self.network, self._rates())
        monitor, mode = self._monitor()
        network = TrainedPart(self.network) if settings.lora_rank else self.network
        average = MovingAverage(network, settings.ema_decay) if settings.ema_decay else None
        every = test_interval(settings, steps)
        tested = {name: part.dev_set for name, part in self.parts.items() if part.dev_set is not None}
        training = training_onion(
            network,
            optimizer,
            TaskSampler(
                data,
                self._strategy(),
                seed=settings.seed,
                reference=settings.reference,
                finished=settings.finished,
            ),
            [self._tester(name, dev_set, every, average) for name, dev_set in tested.items()],
            output,
            settings,
            test_every=every,
            monitor=monitor,
            mode=mode,
            train_items=[item for name in self.parts for item in self._train_items(name)],
            average=average,
            resume="force" if force_resume else True,
        )
        notes = {part.settings.train: part.train_set.notes for part in self.parts.values()}
        for name, dev_set in tested.items():
            own = self.parts[name].settings
            notes[tested_on(own.train, str(own.dev))] = dev_set.notes
        tasks = {name: part.task for name, part in self.parts.items()}
        files = {name: part.files for name, part in self.parts.items()}
        config = self.network.encoder.config
        folder = RunFolder(output, settings, tasks, files, self.tokenizer, config, notes, force_resume)
        frozen = [FrozenEncoder(output, self.network)] if settings.lora_rank else []
        return in_processes(Runner(folder, *frozen, *training.items), settings)

    def _data(self, part: Part) -> TaskData:
        own = part.settings
        provider = training_data(
            part.task,
            part.train_set,
            own.batch_size or self.settings.batch_size,
            self.settings.seed,
            self.tokenizer.pad_id,
            shuffle_buffer=own.shuffle_buffer,
            class_balanced=own.class_balanced,
        )
        return TaskData(provider, own.mix_ratio, own.target)

    def _strategy(self) -> strategies.Strategy:
        made: dict[str, strategies.Strategy] = {
            "mix-ratio": strategies.MixRatio(),
            "uniform": strategies.Uniform(),
            "by-size": strategies.BySize(),
            "temperature": strategies.Temperature(self.settings.temperature),
            "round-robin": strategies.RoundRobin(),
            "by-loss": strategies.ByLoss(),
        }
        return made[self.settings.strategy]

    def _rates(self) -> dict[str, float]:
        """Return the learning rates of the heads that have one of their own, as factors of the general one."""
        rates = {name: part.settings.learning_rate for name, part in self.parts.items()}
        return {name: rate / self.settings.learning_rate for name, rate in rates.items() if rate is not None}

    def _train_items(self, name: str) -> list[RunnerItem]:
        part = self.parts[name]
        items = part.task.train_items(self.tokenizer, self.settings.seed)
        if part.teacher is not None:
            items = [*items, Forward(part.teacher.network), OutputsToBatch(TEACHER)]
        return [ForTask(name, item) for item in items]

    def _tester(self, name: str, dev_set: Examples, every: Interval, average: MovingAverage | None) -> Tester:
        part = self.parts[name]
        test = evaluation_onion(
            part.task,
            self.network.networks[name],
            dev_set,
            part.task.metric(str(part.files.dev)),
            self.tokenizer.pad_id,
            part.task.eval_items(self.tokenizer, self.settings.seed),
            batch_size=self.settings.test_batch_size,
            average=average,
        )
        return Tester(test, every=every, name=name)

    def _monitor(self) -> tuple[str | None, Mode]:
        """Return the metric that selects the best checkpoint, by default one of the reference task if it is tested."""
        tested = [name for name, part in self.parts.items() if part.dev_set is not None]
        if not tested:
            return None, "max"
        first = self.settings.reference_task
        default = first if first in tested else tested[0]
        wanted = self.settings.monitor or f"{default}.{self.parts[default].task.monitor}"
        name, _, metric = wanted.partition(".")
        if name not in tested:
            raise DataError(
                f"monitor: {shown(wanted)} names no task that is tested; write TASK.METRIC, with one of the tasks "
                f"{listed(tested)}"
            )
        part = self.parts[name]
        figure, mode = best_figure(part.task.metric(str(part.files.dev)), metric)
        return f"{name}.{figure}", mode


def _network(settings: MultiTaskSettings, parts: Mapping[str, Part], start: Initialization) -> MultiHead:
    own = {name: part.task for name, part in parts.items() if part.settings.share_head_with is None}
    encoder, networks = start.networks(own)
    for name, part in parts.items():
        owner = part.settings.share_head_with
        if owner is not None:
            _refuse_other_labels(name, part.task, owner, parts[owner].task)
            networks[name] = networks[owner]
    in_order = {name: networks[name] for name in parts}
    losses = {
        name: SoftTargetsLoss(in_order[name], part.settings.teacher_weight, part.settings.teacher_temperature)
        for name, part in parts.items()
        if part.teacher is not None
    }
    weights = {name: part.settings.loss_weight for name, part in parts.items()}
    return MultiHead(encoder, in_order, weights=weights, losses=losses)


def _refuse_other_labels(name: str, task: Task, owner: str, owners: Task) -> None:
    if _labels(task) != _labels(owners):
        raise DataError(
            f"tasks: {shown(name)} shares the head of {shown(owner)}, but their labels differ ({listed(_labels(task))} "
            f"and {listed(_labels(owners))}); give both the same: labels: [...]"
        )


def _labels(task: Task) -> Sequence[str]:
    """Return the labels of a task in order; of a task without labels, nothing."""
    return tuple(task.record().get("labels") or ())
