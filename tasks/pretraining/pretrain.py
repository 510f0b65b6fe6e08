"""Pretraining: a ready runner for any of the tasks, and the job behind ``onion pretrain``."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import attrs

from onion import (
    Accumulate,
    DataProvider,
    Evaluator,
    Forward,
    GradientMachine,
    Logger,
    MixedPrecision,
    NanGuard,
    ParameterUpdater,
    Progress,
    Runner,
    Saver,
    Signals,
    TaskSampler,
    Tester,
)
from onion.checkpointing.run_state import best_checkpoint
from onion.data.source import Indexed
from onion.distributed.process_group import first_rank_first
from onion.engine.periodic import Interval
from onion.errors import DataError
from onion.host import launch
from onion.messages import shown
from onion.models.families import read_config
from onion.models.tokenizer import Tokenizer
from onion.monitoring.forgetting import forgetting
from onion.multitask.task_data import TaskData
from onion.paths import anchored
from onion.tasks.collector import Decoder
from onion.tasks.data.features.hashing import digest_of_file, digest_of_tokenizer
from onion.tasks.finetune.fine_tune import Trained, returning
from onion.tasks.finetune.loggers import trackers
from onion.tasks.finetune.optimization import adamw
from onion.tasks.finetune.recipes import LOG, in_processes
from onion.tasks.finetune.run_files import write_text
from onion.tasks.finetune.seeding import seed_everything
from onion.tasks.networks.multi_head import MultiHead
from onion.tasks.pretraining.corpus.corpus import Corpus, has_flags
from onion.tasks.pretraining.corpus.flags import ENTITY, PHRASE
from onion.tasks.pretraining.corpus.opening import open_corpus
from onion.tasks.pretraining.encoder_writer import EncoderWriter
from onion.tasks.pretraining.examples import PassExamples, collate
from onion.tasks.pretraining.masking.masking import MaskedExamples, Masking
from onion.tasks.pretraining.metric import PretrainingMetric
from onion.tasks.pretraining.model import (
    check_tasks,
    check_vocabulary,
    digest_of,
    new_network,
    pretrained_network,
)
from onion.tasks.pretraining.registry import get_pretraining_task
from onion.tasks.pretraining.run_folder import PretrainingFolder
from onion.tasks.pretraining.settings import ENDLESS, MASKING, PretrainingSettings
from onion.tasks.pretraining.task import PretrainingTask
from onion.tasks.pretraining.throughput import Throughput

log = logging.getLogger("onion")

FORGETTING = "forgetting.svg"

COUNTED = 2000
"""Examples of a task that its baselines are counted on."""


@attrs.frozen
class Part:
    """One task and its examples.

    Attributes:
        task: with its settings.
        samples: of the corpus, not masked.
        train: of the corpus, as they are learned from.
        held_out: of the other corpus, not masked; None: it is not tested.
        tested: of the other corpus, as they are tested on.
    """

    task: PretrainingTask
    samples: PassExamples
    train: PassExamples
    held_out: PassExamples | None
    tested: PassExamples | None

    def baseline(self) -> dict[str, float]:
        """Return figures that learning nothing would reach on the held-out examples."""
        if self.held_out is None:
            return {}
        return self.task.baseline(*(_some(each.of_pass(0)) for each in (self.samples, self.held_out)))


def _some(examples: Indexed) -> Sequence[Any]:
    """Return some examples, as far from each other as they can be."""
    many = len(examples)
    return [examples[number * many // min(COUNTED, many)] for number in range(min(COUNTED, many))]


@attrs.frozen
class PretrainingJob:
    """All that a pretraining needs, read and made.

    Attributes:
        settings: what was asked for.
        corpus: to learn from.
        parts: the tasks by name.
        network: with the weights it begins with.
        sums: fingerprints of what it begins with, by name.
    """

    settings: PretrainingSettings
    corpus: Corpus
    parts: Mapping[str, Part]
    network: MultiHead
    sums: Mapping[str, str]

    @classmethod
    def prepare(cls, settings: PretrainingSettings) -> PretrainingJob:
        """Open the corpora and make the network, after seeding every random generator.

        Raises:
            OnionError: a corpus, the weights or a setting are not what they should be.
        """
        tokenizer = None if settings.tokenizer is None else Tokenizer.from_pretrained(settings.tokenizer)
        corpus = open_corpus(settings.corpus, tokenizer)
        held_out = None if settings.held_out is None else open_corpus(settings.held_out, tokenizer)
        digest = digest_of_tokenizer(corpus.tokenizer)
        if tokenizer is not None and digest_of_tokenizer(tokenizer) != digest:
            raise DataError(
                f"{settings.corpus}: has a tokenizer of its own, and not {settings.tokenizer}; leave it out"
            )
        if held_out is not None and digest_of_tokenizer(held_out.tokenizer) != digest:
            raise DataError(f"{settings.held_out}: built with another tokenizer than {settings.corpus}; build it anew")
        if held_out is not None and held_out.fingerprint == corpus.fingerprint:
            raise DataError(f"{settings.held_out}: is the corpus that is learned from; test on another one")
        tasks = tasks_of(settings)
        seed_everything(settings.seed)
        network, sums = _network(settings, corpus, tasks)
        network.encoder.gradient_checkpointing = settings.gradient_checkpointing
        masking = masking_of(settings)
        _check_levels(masking, corpus, settings.corpus)
        parts = {name: _part(task, corpus, held_out, masking, settings) for name, task in tasks.items()}
        sums |= {"corpus_sha256": corpus.fingerprint, "tokenizer_sha256": digest, **_sums_of_files(tasks)}
        sums |= {} if held_out is None else {"held_out_sha256": held_out.fingerprint}
        _warn_of_positions(settings, network.encoder.config.max_length, tasks)
        return cls(settings, corpus, parts, network, sums)

    @property
    def tests_stages(self) -> bool:
        """Whether there are several stages, and tasks are tested after each."""
        settings = self.settings
        tested = any(part.tested is not None for part in self.parts.values())
        return tested and settings.test_every == "pass" and len(settings.strategy().table) > 1

    def baseline(self) -> dict[str, float]:
        """Return figures that learning nothing would reach on the held-out corpus, by task."""
        return {
            f"{name}.{figure}": value for name, part in self.parts.items() for figure, value in part.baseline().items()
        }

    def onion(self, output: Path, *, extend: bool = False, force_resume: bool = False) -> Runner:
        """Compose the pretraining."""
        settings, network = self.settings, self.network
        strategy = settings.strategy()
        if extend and settings.schedule not in ENDLESS:
            raise DataError(
                f"extend: the schedule {settings.schedule} was planned for the batches of the saved run, and the "
                f"extended one has more; use one of {', '.join(ENDLESS)} from the beginning"
            )
        optimizer = adamw(
            network,
            settings.rates(settings.updates()),
            settings.weight_decay,
            settings.max_grad_norm,
            betas=(settings.adam_beta1, settings.adam_beta2),
            epsilon=settings.adam_epsilon,
        )
        resume: bool | Literal["force"] = "force" if force_resume else True
        training = Runner(
            Progress(),
            Signals(),
            PretrainingFolder(output, settings, self.sums, extend, force_resume),
            Saver(output, settings.save_every or "pass", keep_last=settings.keep_last, resume=resume, extends=extend),
            *trackers(settings, output),
            Logger(output / LOG, every=settings.log_every),
            EncoderWriter(
                network, output / "encoder", self.corpus.tokenizer, settings.layout, every=settings.save_every or "pass"
            ),
            *(self._tester(name) for name, part in self.parts.items() if part.tested is not None),
            TaskSampler({name: self._data(name) for name in self.parts}, strategy, seed=settings.seed),
            ParameterUpdater(optimizer),
            *([] if settings.precision == "float32" else [MixedPrecision(settings.precision)]),
            NanGuard(check_every=settings.log_every),
            *([Accumulate(batches, self._weight)] if (batches := settings.gradient_accumulation_steps) > 1 else []),
            Throughput(network.encoder.config, settings.peak_gflops),
            GradientMachine(network),
        )
        return in_processes(training, settings)

    def _weight(self, batch: Any) -> float:
        """Return the weight of a batch in an update of several: what its loss is a mean over; of several tasks, one."""
        if len(self.parts) > 1:
            return 1.0
        return self.network.loss_weight(batch) or len(batch["lengths"])

    def _data(self, name: str) -> TaskData:
        settings = self.settings
        return TaskData(
            DataProvider(
                self.parts[name].train,
                tokens_per_batch=settings.tokens_per_batch,
                shuffle=True,
                seed=settings.seed,
                collate=partial(_batch_of, name, self.corpus.tokenizer.pad_id),
            )
        )

    def _tester(self, name: str) -> Tester:
        part = self.parts[name]
        assert part.tested is not None
        every: Interval = self.settings.test_every or "pass"
        data = DataProvider(
            part.tested.of_pass(0),
            tokens_per_batch=self.settings.tokens_per_batch,
            lengths=part.tested.lengths,
            collate=partial(_batch_of, name, self.corpus.tokenizer.pad_id),
        )
        metric = PretrainingMetric(part.task.classes, part.task.masks)
        test = Runner(data, Evaluator(metric), Decoder(self.network), Forward(self.network))
        return Tester(test, every=every, name=name)


def _batch_of(task: str, pad_id: int, examples: list[Any]) -> dict[str, Any]:
    """Return a batch of a task; a function of the module, since workers get it pickled."""
    return {**collate(examples, pad_id), "task": task}


def tasks_of(settings: PretrainingSettings) -> dict[str, PretrainingTask]:
    """Return the tasks by name.

    Raises:
        DataError: there is no such task, or it has no such setting.
    """
    return {
        name: get_pretraining_task(name, {"max_length": settings.max_length, **_options(settings, name)})
        for name in settings.tasks
    }


def masking_of(settings: PretrainingSettings) -> Masking:
    """Return what is masked; raise a DataError for settings that do not exist or are out of range."""
    options = _options(settings, MASKING)
    known = attrs.fields_dict(Masking)
    if unknown := [name for name in options if name not in known]:
        raise DataError(f"unknown setting {shown(unknown[0])}; the masks have {', '.join(known)}")
    try:
        return Masking(**options)
    except DataError as error:
        raise DataError(f"{MASKING}.{error}") from None


def _check_levels(masking: Masking, corpus: Corpus, where: str) -> None:
    """Refuse to mask units of which a corpus has none, in whose place words would be masked.

    Raises:
        DataError: the message names the kind of unit.
    """
    for name, needed in {"phrase": PHRASE, "entity": PHRASE | ENTITY}.items():
        if masking.levels.get(name) and not has_flags(corpus, needed):
            units = "phrases" if needed == PHRASE else "entities or phrases"
            raise DataError(
                f"{MASKING}.levels: {where} has no {units}; build it with --entities or --dictionary, or mask words"
            )


def _options(settings: PretrainingSettings, name: str) -> dict[str, Any]:
    prefix = f"{name}."
    return {key.removeprefix(prefix): value for key, value in settings.options.items() if key.startswith(prefix)}


def _network(
    settings: PretrainingSettings, corpus: Corpus, tasks: Mapping[str, PretrainingTask]
) -> tuple[MultiHead, dict[str, str]]:
    """Return the network, and the fingerprint of what its weights are made of."""
    if settings.config is not None:
        config = read_config(Path(settings.config))
        check_vocabulary(config, corpus.tokenizer, settings.config)
        check_tasks(config, tasks)
        return new_network(config, corpus, tasks, settings.seed), {"config_sha256": digest_of_file(settings.config)}
    assert settings.encoder is not None
    network = pretrained_network(settings.encoder, corpus, tasks, settings.seed)
    check_tasks(network.encoder.config, tasks)
    return network, {"encoder_sha256": digest_of(network)}


def _sums_of_files(tasks: Mapping[str, PretrainingTask]) -> dict[str, str]:
    """Return the SHA-256 of each file that a task reads, by the setting that names it."""
    named = {f"{name}.{file}": getattr(task, file) for name, task in tasks.items() for file in task.files}
    return {f"{name}_sha256": digest_of_file(path) for name, path in named.items() if path is not None}


def _warn_of_positions(settings: PretrainingSettings, positions: int, tasks: Mapping[str, PretrainingTask]) -> None:
    """Tell of positions that stay random; of a pretrained encoder they are trained already."""
    longest = max(task.max_length for task in tasks.values())
    if settings.config is not None and positions > longest:
        log.warning(
            "%s: the encoder takes %d tokens, and examples have at most %d: the positions behind them stay random; "
            "lower max_position_embeddings, raise max_length, or fine-tune with no more than %d tokens",
            settings.config,
            positions,
            longest,
            longest,
        )


@contextmanager
def _naming(task: str, corpus: str | None) -> Iterator[None]:
    """Name the corpus in which a task finds nothing."""
    try:
        yield
    except DataError as error:
        if not str(error).startswith(f"{task}: "):  # it names a file of the task
            raise
        raise DataError(f"{corpus}: {error}") from None


def _part(
    task: PretrainingTask, corpus: Corpus, held_out: Corpus | None, masking: Masking, settings: PretrainingSettings
) -> Part:
    seed = settings.seed
    with _naming(task.name, settings.corpus):
        samples = task.samples(corpus, seed)
    with _naming(task.name, settings.held_out):
        other = task.held_out_samples(held_out, corpus, seed)

    def masked(given: PassExamples) -> PassExamples:
        return MaskedExamples(given, masking, corpus.tokenizer, seed) if task.masks else given

    return Part(task, samples, masked(samples), other, None if other is None else masked(other))


def pretrain(output: str | Path, *, extend: bool = False, force_resume: bool = False, **settings: Any) -> Runner:
    """Return the runner that pretrains an encoder; nothing is run, and nothing written except cached segments.

        runner = pretrain("run", corpus="wiki", held_out="wiki-valid", config="small.json", max_steps=10_000)
        runner.insert_before(ParameterUpdater, MyItem()).run(passes=1)

    A pass is a stage of the schedule; ``settings.strategy().table`` tells how many there are. During the run and
    afterwards ``onion train`` takes ``run/encoder`` as its encoder.

    Args:
        output: the folder for checkpoints, log and encoder.
        extend: go on with a run of fewer tasks in the folder; see ``Saver``. Default False.
        force_resume: resume in the folder even if its pretraining differs; the differences are logged. Default False.
        settings: those of ``onion.tasks.pretraining.settings.PretrainingSettings``.

    Raises:
        OnionError: a corpus, the weights or a setting are not what they should be.
    """
    job = PretrainingJob.prepare(made(settings))
    return job.onion(anchored(output), extend=extend, force_resume=force_resume)


def made(given: Mapping[str, Any]) -> PretrainingSettings:
    """Return settings by name; those of tasks and masks, which have a dot in their names, become options.

    Raises:
        DataError: there is no such setting, or a value is invalid.
    """
    general = PretrainingSettings.declared()
    options = {**given.get("options", {}), **{name: value for name, value in given.items() if "." in name}}
    own = {name: value for name, value in given.items() if "." not in name and name != "options"}
    if unknown := [name for name in own if name not in general]:
        raise DataError(
            f"unknown setting {unknown[0]!r}; a pretraining has {', '.join(general)}, and settings of its tasks and "
            "masks, such as next-sentence.max_length and masking.share"
        )
    if "corpus" not in own:
        raise DataError("corpus is missing; set it with --corpus or in the file of settings")
    return PretrainingSettings(**own, options=options)


def train(
    settings: PretrainingSettings,
    output: Path,
    *,
    extend: bool = False,
    force_resume: bool = False,
    quiet: bool = False,
) -> Trained:
    """Pretrain an encoder; ``output`` then holds checkpoints, log, the encoder and the onion's drawing.

    The same call resumes an interrupted pretraining.

    Raises:
        OnionError: a corpus, the weights or the folder are not what they should be; no partial output is left.
    """
    begun = perf_counter()
    with first_rank_first():  # the others find the segments in the cache
        job = PretrainingJob.prepare(settings)
    runner = returning(job.onion(anchored(output), extend=extend, force_resume=force_resume), quiet)
    folder = runner[PretrainingFolder]
    if launch.rank() == 0:
        folder.look()
        print(runner, flush=True)
    state = runner.run(passes=len(settings.strategy().table))
    signal = runner[Signals].received
    if launch.rank() > 0:
        return Trained({"step": state.step}, signal)
    if signal is None and job.tests_stages:
        _tell_forgetting(job, output)
    report = {
        "step": state.step,
        **dict(sorted(best_checkpoint(runner[Saver].folder).run["metrics"].items())),
        **(job.baseline() if signal is None else {}),
        "seconds": round(perf_counter() - begun, 1),
        "output": str(folder.output),
        "encoder": str(folder.output / "encoder"),
    }
    return Trained(report, signal)


def _tell_forgetting(job: PretrainingJob, output: Path) -> None:
    """Print how good each task that is tested is after each stage, and draw it."""
    monitors = {name: part.task.monitor for name, part in job.parts.items() if part.tested is not None}
    losses = [name for name, monitor in monitors.items() if monitor in PretrainingMetric.less_is_better]
    matrix = forgetting(output / LOG, {name: f"{name}.{monitor}" for name, monitor in monitors.items()}, losses)
    print(matrix.table(), flush=True)
    write_text(output / FORGETTING, matrix.svg())
