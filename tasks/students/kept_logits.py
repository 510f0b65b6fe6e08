"""A teacher's logits, kept by example: computed once, and read by every pass and every student.

A folder has ``logits.npy``, float32 [examples, classes], and ``logits.json``: what they are of (a digest of the teacher
and of the file of examples), and how many are done. An interrupted computation goes on there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import attrs
import numpy as np
from numpy.lib.format import open_memmap
from tqdm import tqdm

from onion import Forward, HookIterator, Runner, RunnerItem, State
from onion.checkpointing.atomic_files import read_file, replace_file
from onion.checkpointing.lock import locked
from onion.errors import CheckpointError
from onion.models.words.names import UNKNOWN
from onion.tasks.collector import Collector
from onion.tasks.data.features.examples import Examples
from onion.tasks.data.features.hashing import digest_of_file, digest_of_tokenizer
from onion.tasks.data.rows import Row
from onion.tasks.finetune.predictor import CHUNK, Predictor
from onion.tasks.finetune.recipes import in_order
from onion.tasks.students.unknown_words import as_read_by, unknown_word

LOGITS_FILE, ABOUT_FILE = "logits.npy", "logits.json"
Shape = tuple[int, int]


@attrs.frozen(eq=False)
class KeptLogits:
    """The logits of a teacher for the rows of a file, in a folder.

    Attributes:
        folder: made if it is missing.
        teacher: computes them.
        path: the file, read by the teacher's task, each row of which is one example.
        shape: rows of the file, and classes.
        replaces: whether logits of another teacher or of other texts are replaced. Default False: they are refused.
        digest: of the teacher and the file.
    """

    folder: Path
    teacher: Predictor
    path: Path
    shape: Shape
    replaces: bool = False
    digest: str = attrs.field(init=False)

    @digest.default
    def _digest(self) -> str:
        return digest_of_teacher(self.teacher, self.path)

    def check(self) -> None:
        """Raise a CheckpointError if the folder holds other logits, or damaged ones; nothing is written."""
        self._done()

    def _done(self) -> int:
        try:
            return done_in(self.folder, self.digest, self.shape)
        except CheckpointError:
            if self.replaces:
                return 0
            raise

    def complete(self, quiet: bool = False, stopped: Callable[[], bool] = lambda: False) -> np.ndarray:
        """Return the logits, float32 [examples, classes], mapped; compute those that are missing.

        Args:
            quiet: whether no progress is shown. Default False: it is, on a terminal.
            stopped: asked after every chunk whether to leave; the rest is then missing. Default: never.

        Raises:
            CheckpointError: the folder holds those of another teacher or other texts, is damaged, or cannot be
                written.
        """
        with self._held():
            done = self._done()
            if done < self.shape[0]:
                self._compute(done, quiet, stopped)
            return mapped(self.folder)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Hold the folder, so that of two trainings one computes and the other waits."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with locked(self.folder, wait=True):
                yield
        except OSError as error:
            raise CheckpointError(f"{self.folder}: cannot keep the teacher's logits: {error.strerror}.") from None

    def _compute(self, done: int, quiet: bool, stopped: Callable[[], bool]) -> None:
        if not done:
            (self.folder / ABOUT_FILE).unlink(missing_ok=True)
        kept = mapped(self.folder, "r+") if done else _made(self.folder, self.shape)
        rows = islice(self.teacher.task.rows(self.path, labelled=False), done, None)
        with tqdm(total=self.shape[0], initial=done, desc="teacher", unit=" rows", disable=quiet or None) as bar:
            while not stopped() and (some := list(islice(rows, CHUNK))):
                kept[done : done + len(some)] = logits_of(self.teacher, some)
                done += len(some)
                kept.flush()
                replace_file(self.folder / ABOUT_FILE, json.dumps({"digest": self.digest, "done": done}).encode())
                bar.update(len(some))


def done_in(folder: Path, digest: str, shape: Shape) -> int:
    """Return how many examples of a folder are done; 0 in a new one.

    Args:
        folder: where logits are kept.
        digest: of the teacher and the file that they have to be of.
        shape: examples and classes.

    Raises:
        CheckpointError: they are of something else, or a file is missing or damaged.
    """
    about = folder / ABOUT_FILE
    if not about.exists():
        return 0
    try:
        found = json.loads(read_file(about))
        of, done = str(found["digest"]), int(found["done"])
        fits = mapped(folder).shape == shape and mapped(folder).dtype == np.float32 and 0 <= done <= shape[0]
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError, MemoryError):
        raise CheckpointError(
            f"{folder} holds damaged logits of a teacher; delete the folder to compute them again."
        ) from None
    if of != digest or not fits:
        raise CheckpointError(
            f"{folder} holds the logits of another teacher or of other texts; delete it, or keep the new ones "
            "elsewhere with --logits DIR."
        )
    return done


def mapped(folder: Path, mode: str = "r") -> np.memmap:
    """Map the logits of a folder into memory; raise an OSError or a ValueError if they are missing or damaged."""
    return open_memmap(folder / LOGITS_FILE, mode)


def _made(folder: Path, shape: Shape) -> np.memmap:
    """Make the file; raise an OSError if the disk has no room for all of it, which a mapped hole would not tell."""
    found = open_memmap(folder / LOGITS_FILE, "w+", np.dtype(np.float32), shape)
    if hasattr(os, "posix_fallocate"):  # not on macOS
        try:
            with (folder / LOGITS_FILE).open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
        except OSError:
            (folder / LOGITS_FILE).unlink()
            raise
    return found


def logits_of(teacher: Predictor, rows: list[Row]) -> np.ndarray:
    """Return a teacher's logits, float32 [rows, classes], of rows of which each is one example."""
    task, tokenizer = teacher.task, teacher.tokenizer
    examples = Examples.of(task.features(as_read_by(tokenizer, rows), tokenizer, False, Counter()))
    collector = Collector(len(rows))
    Runner(in_order(task, examples, tokenizer.pad_id), collector, _Arrays(), Forward(teacher.network)).run(passes=1)
    return np.stack(collector.found)


class _Arrays(RunnerItem):
    """Turn the outputs into an array on the way out."""

    def on_batch(self, state: State) -> HookIterator:
        yield
        state.outputs = state.outputs.astype("float32").numpy()


def digest_of_teacher(teacher: Predictor, path: Path) -> str:
    """Return the digest of a teacher's parameters, tokenizer and task, and of a file."""
    found = hashlib.sha256()
    for name, value in sorted(teacher.network.state_dict().items()):
        found.update(name.encode())
        found.update(value.astype("float32").numpy().tobytes())
    features = json.dumps(teacher.task.features_record(), sort_keys=True)
    unknown = unknown_word(teacher.tokenizer)
    own = [] if unknown == UNKNOWN else [unknown]
    for part in (digest_of_tokenizer(teacher.tokenizer), features, digest_of_file(path), *own):
        found.update(part.encode())
    return found.hexdigest()
