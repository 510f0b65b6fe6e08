"""Distillation: a ready runner for a small student of a fine-tuned teacher, and the job behind ``onion distill``."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import attrs
from paddle import nn

from onion import GradientMachine, Runner, RunnerItem
from onion.errors import DataError
from onion.models.auto import new_encoder
from onion.models.pretrained_encoder import arrays_of
from onion.models.tokenizer import Tokenizer
from onion.models.words.config import WordsConfig
from onion.models.words.names import UNKNOWN
from onion.models.words.tokenizer import word_tokenizer
from onion.paths import anchored
from onion.tasks.data.data_files import DataFiles
from onion.tasks.data.features.cache import cached_features
from onion.tasks.data.features.hashing import digest_of_arrays
from onion.tasks.data.prepared import named, prepared
from onion.tasks.finetune.fine_tune import Job, Trained, completed, returning
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.run_folder import RunFolder
from onion.tasks.finetune.seeding import seed_everything
from onion.tasks.matching import PAIRWISE, Matching
from onion.tasks.networks.distillation import SoftTargetsLoss
from onion.tasks.students import tiny
from onion.tasks.students.kept_logits import KeptLogits
from onion.tasks.students.known_labels import KnownLabels, OfKnownLabels
from onion.tasks.students.lessons import LabelledTask, Lessons
from onion.tasks.students.settings import TINY, DistillSettings
from onion.tasks.students.teacher_logits import TeacherLogits
from onion.tasks.students.unknown_words import unknown_word
from onion.tasks.students.vocabulary import frequent_words
from onion.tasks.teaching.comparison import compared
from onion.tasks.teaching.teacher import encoder_of_layers, load_teacher

LOGITS_FOLDER = "teacher"
"""The folder of the teacher's logits in that of a run."""


def distill(
    teacher: str | Path,
    train: str | Path,
    dev: str | Path,
    output: str | Path,
    student: str = "bow",
    *,
    force_resume: bool = False,
    **settings: Any,
) -> Runner:
    """Return the runner that trains a small student by a teacher; nothing is run yet.

    After the run, the output folder is a run like any other: ``onion evaluate``, ``onion predict`` and
    ``Predictor.load`` take it.

        runner = distill("teacher", "train.tsv", "dev.tsv", "student", "bow", unlabelled="more.tsv", copies=4)
        runner.run(passes=10)

    Args:
        teacher: the folder of a run of ``onion train``; a classification, or a matching that learned pointwise.
        train: labelled rows; the labels are the teacher's.
        dev: the file to test on while training.
        output: the folder for checkpoints, the log and the teacher's logits.
        student: ``"bow"``, ``"cnn"``, ``"lstm"`` (words of their own) or ``"tiny"`` (layers of the teacher).
        force_resume: resume in the folder even if its training differs. Default False.
        settings: any of ``onion.tasks.students.settings.DistillSettings``; ``passes`` is what the learning rate is
            planned for. Default: those of the student's recipe.

    Raises:
        OnionError: a file, the teacher or a setting is invalid, or a library is missing.
    """
    given = {"teacher": str(teacher), "train": str(train), "dev": str(dev), "student": student, **settings}
    return StudentJob.of(DistillSettings.of(given)).onion(anchored(output), force_resume)


def train(settings: DistillSettings, output: Path, force_resume: bool = False, quiet: bool = False) -> Trained:
    """Train a student, and compare it with its teacher; the same call resumes an interrupted training.

    Returns:
        What a fine-tuning reports, and figures, parameters and seconds per 1000 texts of teacher and student.

    Raises:
        OnionError: a file, the teacher or the folder is invalid; no partial output is left.
    """
    begun = perf_counter()
    job = StudentJob.of(settings)
    runner = returning(job.onion(anchored(output), force_resume), quiet)
    if settings.student != TINY and settings.teacher_weight:
        runner[TeacherLogits].quiet = quiet
    runner[RunFolder].look()
    print(runner, flush=True)
    trained = completed(job, runner, begun)
    if trained.signal is not None:
        return trained
    sides = compared(job.teacher, Predictor.load(output), str(job.files.dev))
    return Trained({**trained.report, "student": settings.student, **sides}, None)


@attrs.frozen
class StudentJob(Job):
    """A training of a student.

    Attributes:
        settings: those of the distillation.
        teacher: the teacher, which is not trained.
        lessons: the rows to learn from.
    """

    settings: DistillSettings
    teacher: Predictor
    lessons: Lessons

    @classmethod
    def of(cls, settings: DistillSettings) -> StudentJob:
        """Read and create everything, and seed all random generators.

        Raises:
            OnionError: a file, the teacher or a setting is invalid, or a library is missing.
        """
        teacher, task = loaded(settings)
        digest = digest_of_arrays(arrays_of(teacher.network))
        settings = attrs.evolve(settings, task=task.name, encoder=settings.student, teacher_sha256=digest)
        files = DataFiles.of(settings.train, settings.dev, settings.columns, settings.seed, task.together)
        assert files.dev is not None
        more = settings.unlabelled
        unlabelled = None if more is None else prepared(more, settings.columns, labelled=False)
        with named(files.train, settings.train):
            lessons = Lessons.of(
                task,
                files.train,
                unlabelled,
                copies=settings.copies,
                words=settings.words,
                seed=settings.seed,
                unknown=unknown_word(teacher.tokenizer) if settings.student == TINY else UNKNOWN,
            )
        tokenizer = tokenizer_of(settings, teacher, lessons)
        train_set = cached_features(task, lessons.path, tokenizer)
        dev_set = cached_features(task, files.dev, tokenizer)
        seed_everything(settings.seed)
        network = task.network(encoder_of(settings, teacher, tokenizer, bool(task.pairs)))
        return cls(
            settings=settings,
            files=DataFiles(lessons.path, files.dev),
            task=task,
            tokenizer=tokenizer,
            network=network,
            train_set=train_set,
            dev_set=dev_set,
            teacher=teacher,
            lessons=lessons,
        )

    def onion(self, output: Path, force_resume: bool = False) -> Runner:
        """Compose the training: a fine-tuning with the teacher in it."""
        runner = super().onion(output, force_resume)
        if not self.settings.teacher_weight:
            return runner
        runner[RunFolder].look()  # the folder of another run is told of before the logits in it
        machine, teaching = self._taught(output, force_resume)
        rings = KnownLabels(self.lessons.labelled), *teaching
        # Just outside the gradient machine: further out, Accumulate takes batches that they would not see.
        return runner.insert_before(GradientMachine, *rings).replace(GradientMachine, machine)

    def _taught(self, output: Path, force_resume: bool) -> tuple[GradientMachine, list[RunnerItem]]:
        """Return the gradient machine with the teacher in its loss, and the rings that bring what it says."""
        settings, teacher = self.settings, self.teacher
        if settings.student == TINY:
            return tiny.machine(self.network, teacher.network, settings), tiny.teaching(teacher.network)
        shape = len(self.train_set), len(self.lessons.task.labels)
        own = settings.logits is None
        folder = output / LOGITS_FOLDER if own else anchored(str(settings.logits))
        logits = KeptLogits(folder, teacher, self.lessons.path, shape, replaces=own and force_resume)
        logits.check()  # before the folder of the run is made
        loss = SoftTargetsLoss(OfKnownLabels(self.network), settings.teacher_weight, settings.temperature)
        return GradientMachine(self.network, loss), [TeacherLogits(logits)]


def loaded(settings: DistillSettings) -> tuple[Predictor, LabelledTask]:
    """Load a teacher, and return its task too.

    Raises:
        CheckpointError: the folder has no run, or no complete checkpoint.
        DataError: it is of a task that students do not learn, or has no layers for a tiny student.
    """
    teacher, folder = load_teacher(settings.teacher, "--teacher")
    task = teacher.task
    if not isinstance(task, LabelledTask):
        raise DataError(f"--teacher: {folder} is of the task {task.name}; students learn classification and matching")
    if isinstance(task, Matching) and task.learning == PAIRWISE:
        raise DataError(
            f"--teacher: {folder} was trained pairwise; give a run that was trained on labels (learning=pointwise)"
        )
    if settings.student == TINY:
        encoder_of_layers(teacher, folder, "--teacher")
    return teacher, task


def tokenizer_of(settings: DistillSettings, teacher: Predictor, lessons: Lessons) -> Tokenizer:
    """Return the student's tokenizer: the teacher's for tiny, otherwise that of the words of the training texts."""
    if settings.student == TINY:
        return teacher.tokenizer
    words = frequent_words(lessons.texts(), lessons.splitting, settings.vocabulary)
    return word_tokenizer(words, lessons.splitting)


def encoder_of(settings: DistillSettings, teacher: Predictor, tokenizer: Tokenizer, pairs: bool) -> nn.Layer:
    """Return the student's encoder with new weights, or with those of the teacher's layers."""
    if settings.student == TINY:
        return tiny.tiny_encoder(teacher.network.encoder, settings.layers)
    return new_encoder(WordsConfig(model_type=settings.student, vocab_size=tokenizer.vocab_size, pairs=pairs))
