"""The onions of examples/, with tiny networks and files; they save more often than the examples do.

An example that is a script is run as far as it comes to run the onion that saves.
"""

from __future__ import annotations

import io
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

from onion import HookIterator, Runner, Saver, State, Tester
from onion.tasks.finetune.fine_tune import Job
from onion.tasks.finetune.settings import Settings
from onion.tasks.networks.gan_bert import Discriminator
from tests.onions import material
from tests.onions.material import files, glue, wide_encoder
from tests.onions.parts import Network, begun, kept
from tests.paths import ROOT

EXAMPLES = ROOT / "examples"


class _Composed(BaseException):
    """The onion is there, and the rest of the script is not wanted."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner


def script(name: str, words: Callable[[Path], list[object]]) -> Callable[[Path], Runner]:
    """Return what composes the runner of a script, whose command line depends on the folder."""

    def compose(folder: Path) -> Runner:
        argv = [name, *map(str, words(folder))]
        with patch.object(sys, "argv", argv), patch.object(Runner, "run", _run), _quiet():
            try:
                runpy.run_path(str(EXAMPLES / name), run_name="__main__")
            except _Composed as composed:
                return often(composed.runner)
        raise AssertionError(f"{name} ran no onion with a Saver.")

    return compose


def _run(self: Runner, passes: int | None = None, steps: int | None = None, parent: Any = None) -> State:
    """Stop at the onion that saves; cut others short."""
    if Saver in self:
        raise _Composed(self)
    return RUN(self, passes, None if steps is None else min(steps, 2), parent)


RUN = Runner.run


@contextmanager
def _quiet() -> Iterator[None]:
    with redirect_stdout(io.StringIO()), patch("onion.device.use_threads", lambda *count: 1):
        yield


def often(runner: Runner) -> Runner:
    """Return the onion with checkpoints and tests every few steps."""
    for tester in runner.all(Tester):
        tester.every = 2
    saver = runner[Saver]
    return runner.replace(Saver, Saver(saver.folder, every=3, monitor=saver.monitor, mode=saver.mode))


def module(name: str) -> Any:
    """Import an example."""
    with patch.object(sys, "path", [str(EXAMPLES), *sys.path]):
        return import_module(name)


def gan_gaussians(folder: Path) -> Runner:
    example = module("gan_gaussians")
    return often(example.onion(folder, example.Generator(2), example.Network(1), 8))


def gan_bert(folder: Path) -> Runner:
    example, job = module("gan_bert"), prepared(wide_encoder(), *files("classification"))
    settings = {"labelled": 0.5, "times": 1, "batch_size": 1, "learning_rate": 3e-3}
    with patch.object(example, "SETTINGS", settings):
        gan = example.onion(job, Discriminator(job.network.encoder, len(job.task.labels)), plain=False)
    return Runner(*kept(folder), *gan.items)


def joint_mrpc(folder: Path) -> Runner:
    example, texts = module("joint_mrpc"), glue()
    pair = texts / "mrpc" / "train.tsv", texts / "mrpc" / "dev.tsv"
    job = prepared(wide_encoder(), *pair, passes=2, batch_size=4, options=example.OPTIONS)
    return Runner(*kept(folder), *example.onion(job, texts, list(example.HELPERS)).items)


def prepared(encoder: Path, train: Path, dev: Path, **settings: Any) -> Job:
    return Job.prepare(
        Settings(task="classification", train=str(train), dev=str(dev), encoder=str(encoder), **settings)
    )


def lr_search(folder: Path) -> Runner:
    example = module("lr_search")
    search = example.RateSearch(example.training, every=3, steps=2)
    search.on_batch = quietly(search.on_batch)
    return Runner(*kept(folder), search, *example.training(Network()).items)


def quietly(hook: Callable[[State], HookIterator]) -> Callable[[State], HookIterator]:
    """Return a hook that prints nothing."""

    def on_batch(state: State) -> HookIterator:
        with redirect_stdout(io.StringIO()):
            yield from hook(state)

    return on_batch


def student(folder: Path) -> list[object]:
    words = [material.sentences(), "--role", "student", "--output", folder]
    return [*words, "--teacher", material.teacher(), "--encoder", material.deep_encoder()]


def siamese(folder: Path) -> list[object]:
    return [material.stsb(), "--output", folder, "--encoder", material.wide_encoder()]


OF_EXAMPLES = {
    "example gan_gaussians": begun(gan_gaussians, steps=8, passes=None),
    "example gan_bert": begun(gan_bert, passes=1),
    "example joint_mrpc": begun(joint_mrpc),
    "example lr_search": begun(lr_search, passes=1),
    "example mean_teacher": begun(script("mean_teacher.py", lambda folder: [folder]), steps=8, passes=None),
    "example two_tasks": begun(script("two_tasks.py", lambda folder: [folder])),
    "example nested_test": begun(script("nested_test.py", lambda folder: [folder]), steps=10, passes=None),
    "example siamese": begun(script("siamese.py", siamese)),
    "example distillation": begun(script("distillation.py", student), passes=1),
}
