"""A teacher's logits, kept by example: computed once, and read by every pass and every student.

A folder has ``logits.npy``, float32 [examples, classes], and ``logits.json``: what they are of (digests of the teacher
and of the file of examples), and how many are done. An interrupted computation goes on there.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from numpy.lib.format import open_memmap
from tqdm import tqdm

from onion import Forward, HookIterator, Runner, RunnerItem, State
from onion.checkpointing.atomic_files import read_file, replace_file
from onion.checkpointing.lock import locked
from onion.engine.placement import BEHIND_DATA
from onion.errors import CheckpointError
from onion.tasks.collector import Collector
from onion.tasks.data.features.examples import Examples
from onion.tasks.data.features.hashing import digest_of_file, digest_of_tokenizer
from onion.tasks.data.rows import Row
from onion.tasks.finetune.predictor import CHUNK, Predictor
from onion.tasks.finetune.recipes import in_order
from onion.tasks.networks.distillation import TEACHER

LOGITS_FILE, ABOUT_FILE = "logits.npy", "logits.json"


class TeacherLogits(RunnerItem):
    """Put the teacher's logits of a batch's examples into it, as ``batch["teacher"]``: float32 [batch, classes].

    They are computed before the first batch, as far as the folder does not have them yet.

    Args:
        logits: where they are kept, and how they are computed.
        quiet: whether no progress is shown meanwhile. Default False.
    """

    alters_batches = True
    keep_for_inference = False
    place_rules = (BEHIND_DATA,)
    alone_because = "one teacher labels all examples"
    transient = ("_rows",)

    def __init__(self, logits: KeptLogits, quiet: bool = False) -> None:
        self.logits, self.quiet = logits, quiet
        self._rows: np.ndarray | None = None

    def initialize(self, state: State) -> HookIterator:
        """Compute what is missing, and map the rest."""
        self._rows = self.logits.complete(self.quiet)
        yield
        self._rows = None

    def on_batch(self, state: State) -> None:
        """Put them there."""
        assert self._rows is not None
        state.batch = {**state.batch, TEACHER: self._rows[state.batch["places"]]}

    def identity(self) -> dict[str, Any]:
        """The teacher and the examples, wherever their logits are kept."""
        return {"logits": self.logits.digest}


@attrs.frozen(eq=False)
class KeptLogits:
    """The logits of a teacher for the rows of a file, in a folder.

    Attributes:
        folder: made if it is missing.
        teacher: computes them.
        path: the file, read by the teacher's task.
        examples: rows of the file.
        digest: of the teacher and the file.
    """

    folder: Path
    teacher: Predictor
    path: Path
    examples: int
    digest: str = attrs.field(init=False)

    @digest.default
    def _digest(self) -> str:
        return digest_of_teacher(self.teacher, self.path)

    def complete(self, quiet: bool = False) -> np.ndarray:
        """Return the logits, float32 [examples, classes]; compute those that are missing.

        Args:
            quiet: whether no progress is shown. Default False: it is, on a terminal.

        Raises:
            CheckpointError: the folder holds those of another teacher or other texts, is damaged, or cannot be
                written.
        """
        with self._written():
            done = self._done()
            if done < self.examples:
                self._compute(done, quiet)
            return np.load(self.folder / LOGITS_FILE, mmap_mode="r", allow_pickle=False)

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Hold the folder, so that of two trainings one computes and the other waits."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with locked(self.folder, wait=True):
                yield
        except (OSError, ValueError) as error:
            told = error.strerror if isinstance(error, OSError) else error
            raise CheckpointError(f"{self.folder}: the teacher's logits cannot be kept or read: {told}.") from None

    def _done(self) -> int:
        """Return how many examples are done; 0 in a new folder."""
        about = self.folder / ABOUT_FILE
        if not about.exists():
            return 0
        try:
            found = json.loads(read_file(about))
            digest, done = str(found["digest"]), int(found["done"])
            whole = np.load(self.folder / LOGITS_FILE, mmap_mode="r", allow_pickle=False).shape == self._shape
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise CheckpointError(f"{about} is damaged; delete the folder to compute it again.") from None
        if digest != self.digest or not whole or not 0 <= done <= self.examples:
            raise CheckpointError(
                f"{self.folder} holds the logits of another teacher or of other texts; choose another folder."
            )
        return done

    @property
    def _shape(self) -> tuple[int, int]:
        return self.examples, len(self.teacher.task.labels)  # type: ignore[attr-defined]

    def _compute(self, done: int, quiet: bool) -> None:
        mode = "r+" if done else "w+"
        kept = open_memmap(self.folder / LOGITS_FILE, mode, np.dtype(np.float32), None if done else self._shape)
        rows = islice(self.teacher.task.rows(self.path, labelled=False), done, None)
        with tqdm(total=self.examples, initial=done, desc="teacher", unit=" rows", disable=quiet or None) as bar:
            while some := list(islice(rows, CHUNK)):
                kept[done : done + len(some)] = logits_of(self.teacher, some)
                done += len(some)
                kept.flush()
                replace_file(self.folder / ABOUT_FILE, json.dumps({"digest": self.digest, "done": done}).encode())
                bar.update(len(some))


def logits_of(teacher: Predictor, rows: list[Row]) -> np.ndarray:
    """Return a teacher's logits, float32 [rows, classes], of rows of which each is one example."""
    task, tokenizer = teacher.task, teacher.tokenizer
    examples = Examples.of(task.features(rows, tokenizer, False, Counter()))
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
        found.update(np.ascontiguousarray(value.astype("float32").numpy()))
    features = json.dumps(teacher.task.features_record(), sort_keys=True)
    for part in (digest_of_tokenizer(teacher.tokenizer), features, digest_of_file(path)):
        found.update(part.encode())
    return found.hexdigest()
