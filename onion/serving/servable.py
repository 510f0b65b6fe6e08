"""A model as the batcher sees it: it prepares rows one by one, and answers several together."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from onion.errors import DataError
from onion.tasks.data.features.examples import Example
from onion.tasks.data.texts import CUT, examples_of, note_cut
from onion.tasks.embedding.declared import pooling_for
from onion.tasks.embedding.embedder import Embedder
from onion.tasks.embedding.exported_encoder import ExportedEncoder
from onion.tasks.embedding.names import MEAN
from onion.tasks.embedding.pooling import Pooling
from onion.tasks.export.exported_network import ExportedNetwork
from onion.tasks.export.manifest import is_exported, read_manifest
from onion.tasks.export.names import EMBEDDING
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.loading import Given, row_line, texts_of
from onion.tasks.question_answering.task import QuestionAnswering
from onion.tasks.task import Task

CLASSIFIER, RERANKER, VECTORS, OTHER = "classifier", "reranker", "embedding", "other"


@attrs.frozen(eq=False)
class Prepared:
    """A row that is ready to be computed.

    Attributes:
        row: of the task.
        examples: of the row; several where it is read through windows.
        tokens: of all of them.
        longest: tokens of the longest one.
        cut: a note of what was cut, of :func:`onion.tasks.data.texts.note_cut`; empty: nothing was.
        named: whether the row had an id of its own.
    """

    row: Any
    examples: Sequence[Example]
    tokens: int
    longest: int
    cut: str = ""
    named: bool = False

    @classmethod
    def of(cls, row: Any, examples: Sequence[Example], notes: Iterable[str]) -> Prepared:
        """Count the tokens of examples, and look for a note of what was cut."""
        cut = next((note for note in notes if note.endswith(CUT)), "")
        lengths = [len(example["ids"]) for example in examples]
        return cls(row, examples, sum(lengths), max(lengths, default=0), cut)


def _one_at_a_time(network: Any) -> AbstractContextManager[Any]:
    """Return what calls of a network hold: nothing for ONNX Runtime, a lock for what Paddle keeps between calls."""
    return nullcontext() if isinstance(network, (ExportedNetwork, ExportedEncoder)) else threading.Lock()


class Servable(ABC):
    """A model that answers rows. Thread-safe.

    Attributes:
        kind: what it gives: classes with scores, the score of a pair, vectors, or something else.
        task: name of its task.
        max_length: tokens of a text.
        alone: whether each row is computed on its own in any case.
    """

    kind: str
    task: str
    max_length: int
    alone: bool

    @abstractmethod
    def prepare(self, given: Given) -> Prepared:
        """Make a row ready.

        Raises:
            DataError: it is not what the model reads.
        """

    @abstractmethod
    def prepare_line(self, line: str) -> Prepared:
        """Make a row ready that is a line of standard input, or of ``answers.jsonl``.

        Raises:
            DataError: it is not what the model reads.
        """

    @abstractmethod
    def answer(self, prepared: Sequence[Prepared]) -> list[Any]:
        """Return the answer to each row."""


class TaskModel(Servable):
    """A trained model of a task."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self.of, self.tokenizer = predictor.task, predictor.tokenizer
        self.task, self.max_length = predictor.task.name, predictor.task.max_length
        self.kind = _kind(predictor.task)
        self.alone = bool(getattr(predictor.network, "alone", False))
        self._held = _one_at_a_time(predictor.network)

    def prepare(self, given: Given) -> Prepared:
        """See Servable."""
        prepared = self.prepare_line(row_line(self.of, given))
        return attrs.evolve(prepared, named=isinstance(given, Mapping) and "id" in given)

    def prepare_line(self, line: str) -> Prepared:
        """See Servable."""
        rows = list(self.of.line_rows([line]))
        notes: Counter[str] = Counter()
        examples = self.of.features(rows, self._predictor.tokenizer, False, notes)
        return Prepared.of(rows[0], examples, notes)

    def answer(self, prepared: Sequence[Prepared]) -> list[Any]:
        """See Servable."""
        made = [{**each, "row": number} for number, one in enumerate(prepared) for each in one.examples]
        with self._held:
            examples, decoded = self._predictor.decoded(made)
        found = list(self.of.predictions([one.row for one in prepared], examples, decoded))
        if isinstance(self.of, QuestionAnswering):  # whose rows are numbered where they have no id
            return [answer if one.named else _without_id(answer) for one, answer in zip(prepared, found, strict=True)]
        return found


class VectorModel(Servable):
    """An encoder; an answer is a vector, float32 ``[hidden]``."""

    kind, task = VECTORS, EMBEDDING

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.max_length, self.width, self.pooling = embedder.max_length, embedder.width, embedder.pooling
        self.alone = bool(getattr(embedder.network, "alone", False))
        self._held = _one_at_a_time(embedder.network)

    def prepare(self, given: Given) -> Prepared:
        """See Servable."""
        first, second = texts_of(given)
        seconds = None if second is None else [second]
        encodings = self._embedder.tokenizer([first], seconds, max_length=self.max_length)
        notes: Counter[str] = Counter()
        note_cut(notes, encodings, self.max_length)
        return Prepared.of(given, examples_of(encodings), notes)

    def prepare_line(self, line: str) -> Prepared:
        """See Servable; the whole line is the text."""
        return self.prepare(line)

    def answer(self, prepared: Sequence[Prepared]) -> list[np.ndarray]:
        """See Servable."""
        with self._held:
            return list(self._embedder.of_examples([{**one.examples[0]} for one in prepared]))


def load_servable(folder: Path, threads: int | None = None, engine: str | None = None) -> Servable:
    """Load a model from the folder of a run, an export or an encoder.

    Raises:
        OnionError: there is no model, it is damaged, or its engine is not installed.
    """
    from onion.tasks.finetune.run_files import RUN_FILE
    from onion.tasks.finetune.run_folder import read_record

    if is_exported(folder) and read_manifest(folder).task == EMBEDDING:
        return VectorModel(Embedder.from_exported(folder, threads=threads))
    if (folder / RUN_FILE).is_file() and "tasks" in read_record(folder):
        raise DataError(f"{folder} holds several tasks; serve one of them: onion export --run {folder} --task NAME")
    if is_exported(folder) or (folder / RUN_FILE).is_file():
        return TaskModel(Predictor.load(folder, engine=engine, threads=threads))
    pooling = pooling_for(folder, default=Pooling(MEAN, normalize=True))
    return VectorModel(Embedder.from_pretrained(folder, **attrs.asdict(pooling)))


def _kind(task: Task) -> str:
    return {"classification": CLASSIFIER, "multilabel": CLASSIFIER, "matching": RERANKER}.get(task.name, OTHER)


def _without_id(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "id"}
