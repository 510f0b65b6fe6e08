"""Compression: a ready runner that trains a smaller model of a trained one, and the job behind ``onion compress``."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import attrs
from paddle import nn

from onion import Forward, GradientMachine, OutputsToBatch, Runner
from onion.checkpointing.lock import exclusive_lock
from onion.errors import DataError
from onion.items.gradient_machine import load_network
from onion.models.encoder import Encoder
from onion.models.hidden_states import WithHiddenStates
from onion.models.narrowing import narrow, narrowed_config
from onion.models.pretrained_encoder import arrays_of
from onion.paths import anchored
from onion.tasks.compression.importance import Importance
from onion.tasks.compression.settings import CompressSettings
from onion.tasks.data.data_files import DataFiles
from onion.tasks.data.features.cache import cached_features
from onion.tasks.data.features.examples import Examples
from onion.tasks.data.features.hashing import digest_of_arrays
from onion.tasks.export.export import check_arguments, export
from onion.tasks.export.manifest import is_exported
from onion.tasks.export.onnx_file import check_packages
from onion.tasks.export.samples import row_lines
from onion.tasks.export.vocabulary import check_cuttable
from onion.tasks.finetune.fine_tune import Job, Trained, completed, returning
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.recipes import training_data
from onion.tasks.finetune.run_folder import RunFolder
from onion.tasks.finetune.seeding import seed_everything
from onion.tasks.networks.distillation import TEACHER, Distillation, EveryHiddenState, copied_layers, with_layers
from onion.tasks.networks.output_loss import OutputLoss
from onion.tasks.networks.paths import ENCODER
from onion.tasks.teaching.comparison import compared
from onion.tasks.teaching.teacher import encoder_of_layers, load_teacher

MEASURED = 2048
"""Training examples, at most, by whose gradients heads and neurons are sorted."""

EXPORT_FOLDERS = "export", ".export.new", ".export.old"
"""The folder of the exported model in that of a run, where it is before the exchange, and where the old one goes.

It is written beside the second, in a folder whose name begins with a dot and that name (``new_folder``)."""

HIDDEN_WEIGHT = 0.1
"""Of each layer's hidden states in the loss, beside 1 of the outputs (``width_lambda2`` of DynaBERT's code)."""


def compress(
    run: str | Path,
    train: str | Path,
    dev: str | Path,
    output: str | Path,
    width: float = 1.0,
    layers: int | None = None,
    *,
    force_resume: bool = False,
    **settings: Any,
) -> Runner:
    """Return the runner that trains a narrower and shallower model of a trained one; nothing is trained yet.

    The smaller network begins with the most important heads and neurons of the trained one
    (:class:`onion.tasks.compression.importance.Importance`) and with evenly spaced layers of it
    (:func:`onion.tasks.networks.distillation.copied_layers`), and learns from its outputs and hidden states, without
    the labels. After the run, the output folder is a run like any other.

        runner = compress("run", "train.tsv", "dev.tsv", "small", width=0.5)
        runner.run(passes=3)

    Args:
        run: the folder of a run of ``onion train``, or the name of a pushed model; of one task, over BERT, RoBERTa,
            ERNIE or ELECTRA.
        train: labelled rows; those of the run, most of the time.
        dev: the file to test on while training.
        output: the folder for checkpoints and the log.
        width: the share of heads and neurons to keep. Default 1.
        layers: how many layers to keep. Default: all.
        force_resume: resume in the folder even if its training differs. Default False.
        settings: any of ``onion.tasks.compression.settings.CompressSettings``.

    Raises:
        OnionError: a file, the run or a setting is invalid.
    """
    given = {"run": str(run), "train": str(train), "dev": str(dev), "width": width, "layers": layers, **settings}
    chosen = CompressSettings.of(given)
    return CompressJob.of(chosen, loaded(chosen)).onion(anchored(output), force_resume)


def train(
    settings: CompressSettings,
    output: Path,
    force_resume: bool = False,
    quiet: bool = False,
    exporting: Mapping[str, Any] | None = None,
) -> Trained:
    """Train a smaller model, and compare it with the one that it was made of; the same call resumes the training.

    Args:
        settings: what is asked for.
        output: the folder for checkpoints and the log.
        force_resume: resume in the folder even if its training differs. Default False.
        quiet: whether the progress bar is hidden. Default False.
        exporting: arguments of :func:`onion.tasks.export.export.export`, by which the best model is written to the
            folder ``export`` in ``output``, in the place of an earlier one. Default: it is not exported.

    Returns:
        What a fine-tuning reports, with the figures of the smaller model as ``dev.*``; figures of the ``teacher`` and
        of what was ``exported``; parameters and seconds per 1000 texts of ``teacher`` and ``student``.

    Raises:
        OnionError: a file, the run or the folder is invalid; no partial output is left.
    """
    begun = perf_counter()
    if exporting is not None:
        check_arguments(**exporting)
        check_packages()
        for name in EXPORT_FOLDERS:
            _check_place(output / name)
    teacher = loaded(settings)
    if exporting is not None:
        _check_export(teacher, settings.columns, **exporting)
    job = CompressJob.of(settings, teacher)
    runner = returning(job.onion(anchored(output), force_resume), quiet)
    runner[RunFolder].look()
    print(runner, flush=True)
    trained = completed(job, runner, begun)
    if trained.signal is not None:
        return trained
    exported = None if exporting is None else _exported(output, exporting)
    student, dev = Predictor.load(output), str(job.files.dev)
    sides = compared(job.teacher, student, dev, exported, settings.seed, settings.test_batch_size)
    return Trained({**trained.report, **sides}, None)


def _exported(run: Path, arguments: Mapping[str, Any]) -> Predictor:
    """Export a run into its own folder, which is locked meanwhile, and return what predicts with it."""
    target, fresh, former = (run / name for name in EXPORT_FOLDERS)
    with exclusive_lock(run, arguments):
        if former.exists() and not target.exists():  # a run was killed at the exchange
            former.rename(target)
        for left in run.glob(f".{fresh.name}.*"):  # of one that was killed before
            shutil.rmtree(left, ignore_errors=True)
        _discard(fresh)
        export(run, fresh, **arguments)
        _discard(former)
        if target.exists():
            target.rename(former)
        fresh.rename(target)
        _discard(former)
    return Predictor.load(target)


def _discard(folder: Path) -> None:
    """Delete a folder of ``EXPORT_FOLDERS``, if it is there, under a name by which one that is killed here finds it.

    Half deleted under its own name, it would look like a folder of someone else.
    """
    if folder.exists():
        gone = folder.with_name(f".{EXPORT_FOLDERS[1]}{folder.name}")
        folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def _check_export(
    run: Predictor,
    columns: Mapping[str, str] | None,
    vocab: str | Path | None = None,
    calibrate: str | Path | None = None,
    **others: Any,
) -> None:
    """Refuse before the training what could not be exported after it.

    Raises:
        DataError: the vocabulary cannot be cut, or a row of the calibration file is not what the task reads.
    """
    if vocab is not None:
        check_cuttable(run)
    if calibrate is not None:
        row_lines(run.task, Path(calibrate), columns)


def _check_place(folder: Path) -> None:
    """Refuse to replace what onion did not write.

    Raises:
        DataError: the folder is there and was not made by an export, or is a link.
    """
    if folder.is_symlink() or (folder.exists() and not is_exported(folder)):
        raise DataError(f"{folder} is there, and was not made by onion export; move it away")


@attrs.frozen
class CompressJob(Job):
    """A training of a smaller model.

    Attributes:
        settings: those of the compression.
        teacher: what it is made of, which is not trained; its heads and neurons are sorted by their importance.
    """

    settings: CompressSettings
    teacher: Predictor

    @classmethod
    def of(cls, settings: CompressSettings, teacher: Predictor) -> CompressJob:
        """Read and create everything, and seed all random generators.

        Args:
            settings: of the compression.
            teacher: of :func:`loaded`; its heads and neurons are sorted.

        Raises:
            OnionError: a file or a setting is invalid.
        """
        task, tokenizer = teacher.task, teacher.tokenizer
        settings = attrs.evolve(
            settings, task=task.name, encoder=settings.run, run_sha256=digest_of_arrays(arrays_of(teacher.network))
        )
        files = DataFiles.of(settings.train, settings.dev, settings.columns, settings.seed, task.together)
        assert files.dev is not None
        train_set = cached_features(task, files.train, tokenizer)
        dev_set = cached_features(task, files.dev, tokenizer)
        seed_everything(settings.seed)
        if settings.width < 1:
            sort_by_importance(teacher, train_set, settings)
        network = task.network(smaller_encoder(teacher.network.encoder, settings))
        head = {path: array for path, array in arrays_of(teacher.network).items() if not path.startswith(ENCODER)}
        load_network(network, {**arrays_of(network), **head})
        return cls(
            settings=settings,
            files=files,
            task=task,
            tokenizer=tokenizer,
            network=network,
            train_set=train_set,
            dev_set=dev_set,
            teacher=teacher,
        )

    def onion(self, output: Path, force_resume: bool = False) -> Runner:
        """Compose the training: a fine-tuning with the teacher in it."""
        student, teacher = WithHiddenStates(self.network), WithHiddenStates(self.teacher.network)
        losses = OutputLoss(self.network), EveryHiddenState(weight=HIDDEN_WEIGHT)
        machine = GradientMachine(student, Distillation(self.network, self.teacher.network, *losses, labels=0))
        # Just outside the gradient machine: further out, Accumulate takes batches that they would not see.
        return (
            super()
            .onion(output, force_resume)
            .insert_before(GradientMachine, Forward(teacher), OutputsToBatch(TEACHER))
            .replace(GradientMachine, machine)
        )


def loaded(settings: CompressSettings) -> Predictor:
    """Load the run that is made smaller.

    Raises:
        CheckpointError: the folder has no run, or no complete checkpoint.
        DataError: it was exported, holds several tasks, or its encoder cannot be made smaller, has too few layers, or
            just as many heads, neurons and layers.
    """
    predictor, folder = load_teacher(settings.run, "--run")
    config = encoder_of_layers(predictor, folder, "--run").config
    there = config.num_hidden_layers
    if settings.layers is not None and settings.layers > there:
        raise DataError(f"--layers {settings.layers}: the run has {there}; choose at most as many")
    if narrowed_config(config, settings.width) == config and settings.layers in (None, there):
        raise DataError(f"nothing would become smaller than {folder}; choose a smaller width, or fewer layers")
    return predictor


def sort_by_importance(teacher: Predictor, examples: Examples, settings: CompressSettings) -> None:
    """Sort the heads and neurons of a trained network, the most important ones first.

    They are measured by the network's ``importance_loss``, if it has one, else by its loss.

    Args:
        teacher: has the network.
        examples: labelled ones; up to ``MEASURED`` of them are read, in random order.
        settings: of the compression.
    """
    network, task, seed = teacher.network, teacher.task, settings.seed
    importance = Importance(network)
    Runner(
        training_data(task, examples, settings.batch_size, seed, teacher.tokenizer.pad_id),
        importance,
        *task.train_items(teacher.tokenizer, seed),
        GradientMachine(network, getattr(network, "importance_loss", None)),
    ).run(steps=-(-min(len(examples), MEASURED) // settings.batch_size))
    importance.sort()
    network.eval()


def smaller_encoder(whole: Encoder, settings: CompressSettings) -> nn.Layer:
    """Return a new encoder with a part of the heads, neurons and layers of another one."""
    narrower = narrow(whole, settings.width)
    there = whole.config.num_hidden_layers
    if settings.layers in (None, there):
        return narrower
    return with_layers(narrower, copied_layers(settings.layers, there))
