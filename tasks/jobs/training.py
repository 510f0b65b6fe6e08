"""Fine-tuning: a ready onion for any task, and the job behind ``onion train``."""

from __future__ import annotations

import random
from pathlib import Path
from time import perf_counter
from typing import Any

import attrs
import numpy as np
import paddle
from paddle import nn

from onion import Runner, Signals
from onion.drawing import as_svg
from onion.items.saver import best_checkpoint
from onion.models.tokenizer import Tokenizer
from onion.tasks.catalogue import task_of
from onion.tasks.features.cache import cached_features
from onion.tasks.features.examples import Examples
from onion.tasks.features.stream import FeatureStream
from onion.tasks.jobs.initial import Start
from onion.tasks.jobs.settings import DRAWINGS, TASK_FILE, Settings, alone_in, claim_folder, write_json, write_text
from onion.tasks.onions import evaluation_onion, training_onion
from onion.tasks.optimization import fine_tuning_optimizer
from onion.tasks.task import Task
from onion.tasks.texts import check_max_length, tell_notes


@attrs.frozen
class Trained:
    """What a training job came to.

    Attributes:
        report: figures for one JSON line.
        signal: the number of the signal that ended it early, or None.
    """

    report: dict[str, Any]
    signal: int | None


def fine_tune(task: str, train: str | Path, dev: str | Path, out: str | Path, **settings: Any) -> Runner:
    """Return the onion that fine-tunes an encoder; nothing has been written yet, and nothing run.

        runner = fine_tune("classify", "train.tsv", "dev.tsv", "run", encoder="minilm", options={"max_length": 64})
        runner.insert_before("parameter_updater", MyItem()).run(passes=3)

    Args:
        task: its name.
        train: the training file.
        dev: the file to test on while training.
        out: the folder for checkpoints and the log.
        settings: any of ``onion.tasks.jobs.settings.Settings``; ``passes`` is what the learning rate is planned for.

    Raises:
        OnionError: a file, the weights or a setting are not what they should be.
    """
    return Job.prepare(Settings(task=task, train=str(train), dev=str(dev), **settings)).onion(Path(out))


@attrs.frozen
class Job:
    """All that a training needs, read and made.

    Attributes:
        settings: what was asked for.
        task: fitted to the training file.
        tokenizer: of the encoder.
        network: with the weights it begins with.
        train_set: what is learned from.
        dev_set: what is tested on.
    """

    settings: Settings
    task: Task
    tokenizer: Tokenizer
    network: nn.Layer
    train_set: Examples | FeatureStream
    dev_set: Examples

    @classmethod
    def prepare(cls, settings: Settings) -> Job:
        """Read and make it all, after seeding every random generator.

        Raises:
            OnionError: a file, the weights or a setting are not what they should be.
        """
        task = task_of(settings.task, settings.options)
        start = Start.of(settings)
        check_max_length(task.max_length, start.config().max_length)
        tokenizer = start.tokenizer()
        task = task.fitted(settings.train)
        train_set = (FeatureStream if settings.stream else cached_features)(task, settings.train, tokenizer)
        dev_set = cached_features(task, settings.dev, tokenizer)
        seed_everything(settings.seed)
        return cls(settings, task, tokenizer, start.network(task), train_set, dev_set)

    def onion(self, out: Path) -> Runner:
        """Compose the training."""
        settings = self.settings
        steps_per_pass = -(-len(self.train_set) // settings.batch_size)
        optimizer = fine_tuning_optimizer(
            self.network,
            settings.lr,
            settings.passes * steps_per_pass,
            warmup=settings.warmup,
            weight_decay=settings.weight_decay,
            clip=settings.clip,
        )
        pad_id = self.tokenizer.pad_id
        test = evaluation_onion(
            self.task,
            self.network,
            self.dev_set,
            self.task.metric(settings.dev),
            pad_id,
            self.task.test_rings(self.tokenizer, settings.seed),
        )
        return training_onion(
            self.task,
            self.network,
            optimizer,
            self.train_set,
            test,
            out,
            batch_size=settings.batch_size,
            seed=settings.seed,
            test_every=settings.test_every or max(1, steps_per_pass // 4),
            pad_id=pad_id,
            rings=self.task.rings(self.tokenizer, settings.seed),
        )


def train(settings: Settings, out: Path) -> Trained:
    """Fine-tune an encoder; ``out`` then holds checkpoints, log, tokenizer, the task's record and the onion's drawing.

    The same call goes on where an interrupted one was saved.

    Raises:
        OnionError: a file, the weights or the folder are not what they should be; nothing is half-written.
    """
    begun = perf_counter()
    job = Job.prepare(settings)
    runner = job.onion(out)
    claim_folder(out, settings.record())  # from here on, things are written
    with alone_in(out):
        job.tokenizer.save_pretrained(out)
        job.network.encoder.config.write(out)
        write_json(out / TASK_FILE, job.task.record())
        for name, drawing in zip(DRAWINGS, (f"{runner}\n", as_svg(runner)), strict=True):
            write_text(out / name, drawing)
        tell_notes(settings.train, job.train_set.notes)
        tell_notes(settings.dev, job.dev_set.notes)
        print(runner, flush=True)
        state = runner.run(passes=settings.passes)
    best = best_checkpoint(out)
    report = {
        "step": state.step,
        **{name: best.run["metrics"][name] for name in sorted(best.run["metrics"])},
        "best_step": best.step,
        **job.task.baseline(job.dev_set),
        "seconds": round(perf_counter() - begun, 1),
        "out": str(out),
    }
    return Trained(report, runner[Signals].received)


def seed_everything(seed: int) -> None:
    """Seed Python's, numpy's and Paddle's random generators."""
    random.seed(seed)
    np.random.seed(seed)
    paddle.seed(seed)
