"""``onion.load``: a trained model or an encoder as a function of texts.

model = onion.load("run")
model("a gripping film")            # {"label": "good", "probabilities": {...}}
model(["a gripping film", "dull"])  # a list of two
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, TypeAlias, TypeVar

import numpy as np

from onion.device import use_threads
from onion.errors import DataError
from onion.messages import shown
from onion.models import hub
from onion.models.tokenization.pre_tokenizer import whole
from onion.tasks.data.rows import STANDARD_INPUT
from onion.tasks.data.texts import PAIR, TEXT
from onion.tasks.embedding.embedder import Embedder
from onion.tasks.export.engines import needs_paddle
from onion.tasks.export.exported_network import ExportedNetwork
from onion.tasks.export.manifest import is_exported, read_manifest
from onion.tasks.export.names import EMBEDDING, PADDLE
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.run_files import RUN_FILE
from onion.tasks.question_answering.task import QuestionAnswering
from onion.tasks.task import Task
from onion.tasks.token_classification.task import TokenClassification

Given: TypeAlias = "str | tuple[str, str] | Mapping[str, Any]"
"""What is predicted for: a text, a pair of texts (a question and its context), or a row as files have it."""


Read = TypeVar("Read")


class Model:
    """A trained model of any task. Thread-safe.

    Args:
        predictor: predicts.

    Attributes:
        task: what it was trained for, with its settings.
    """

    def __init__(self, predictor: Predictor) -> None:
        self.task = predictor.task
        self._predictor = predictor
        # A session of ONNX Runtime takes calls of several threads; what a network of Paddle keeps between calls is one.
        self._lock = None if isinstance(predictor.network, ExportedNetwork) else threading.Lock()

    def __call__(self, given: Given | Sequence[Given]) -> Any:
        """Predict for a text, a pair, or a row; or for each of several, in batches of similar length.

        Returns:
            A dict, what ``onion predict`` writes for a row; a list of these for a list.

        Raises:
            DataError: a row is not what the task reads; the message has its number, from 1. Or it is a table.
        """
        if isinstance(given, (str, tuple, Mapping)):
            return self._answers([given])[0]
        return self._answers(_listed(given))

    def _answers(self, given: Sequence[Given]) -> list[dict[str, Any]]:
        lines = [_named(number, partial(row_line, self.task), each) for number, each in enumerate(given, start=1)]
        try:
            if self._lock is None:
                return list(self._predictor(self.task.line_rows(lines), Counter()))
            with self._lock:
                return list(self._predictor(self.task.line_rows(lines), Counter()))
        except DataError as error:
            raise DataError(str(error).replace(f"{STANDARD_INPUT}:", "text ", 1)) from None


def row_line(task: Task, given: Given) -> str:
    """Return a row as a line that ``Task.line_rows`` reads.

    Raises:
        DataError: it is no text, no pair of texts and no row.
    """
    if isinstance(given, str):
        row: Mapping[str, Any] = {TEXT: given}
    elif isinstance(given, Mapping):
        row = dict(given)
    elif isinstance(given, tuple) and len(given) == 2:
        if isinstance(task, TokenClassification):
            raise DataError(f"the task {task.name} reads one text, not a pair")
        names = ("question", "context") if isinstance(task, QuestionAnswering) else (TEXT, PAIR)
        row = dict(zip(names, given, strict=True))
    else:
        raise DataError(f"{shown(given)} is no text, no pair of texts (a tuple) and no row (a dict)")
    try:
        return json.dumps(row, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"{error}; a row has strings, numbers and lists of them") from None


def _named(number: int, read: Callable[[Given], Read], given: Given) -> Read:
    """Read one of several rows, and name its number where it is wrong."""
    try:
        return read(given)
    except DataError as error:
        raise DataError(f"text {number}: {error}") from None


def _listed(given: Iterable[Any]) -> list[Any]:
    """Return several rows as a list; a table of pandas or numpy would give its columns, or its rows as arrays.

    Raises:
        DataError: it is a table.
    """
    if getattr(given, "ndim", 1) != 1:
        raise DataError("a table is no list of rows; give a column of texts, or its rows as dicts")
    return list(given)


def texts_of(given: Given) -> tuple[str, str | None]:
    """Return the text that an encoder reads, and the second one of a pair.

    Raises:
        DataError: there is no text, or something else in its place.
    """
    first: Any = given
    second: Any = None
    if isinstance(given, Mapping):
        first, second = given.get(TEXT), given.get(PAIR)
    elif isinstance(given, tuple):
        if len(given) != 2:
            raise DataError(f"{shown(given)} is no pair of texts, which is a tuple of two")
        first, second = given
    if not isinstance(first, str) or not isinstance(second, (str, NoneType)):
        raise DataError(f"an encoder reads {TEXT}, and {PAIR} if there are two texts; both are texts")
    return first, second


class VectorModel:
    """An encoder as a function from texts to vectors. Thread-safe.

    Args:
        embedder: computes the vectors.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._lock = threading.Lock()

    def __call__(self, given: Given | Sequence[Given]) -> np.ndarray:
        """Return the vector of a text, a pair or a row, float32 ``[hidden]``; of several ``[texts, hidden]``.

        Raises:
            DataError: something is no text, or there are texts and pairs.
        """
        one = isinstance(given, (str, tuple, Mapping))
        several: list[Any] = [given] if one else _listed(given)
        rows = [_named(number, texts_of, each) for number, each in enumerate(several, start=1)]
        firsts, seconds = [first for first, _ in rows], [second for _, second in rows if second is not None]
        if seconds and len(seconds) < len(rows):
            raise DataError("these are texts and pairs; give one kind at a time")
        with self._lock:
            vectors: np.ndarray = self.embedder(firsts, seconds or None)
        return vectors[0] if one else vectors


def load(
    name_or_folder: str | Path,
    *,
    engine: str | None = None,
    task: str | None = None,
    threads: int | None = None,
    **settings: Any,
) -> Model | VectorModel:
    """Load a trained model or an encoder as a function of texts.

        model = onion.load("run")
        vectors = onion.load("minilm", pooling="mean", normalize=True)(["a film", "a plot"])

    Args:
        name_or_folder: of ``onion train`` or ``onion export``; a model from ``onion push``, ``OWNER/NAME``; or an
            encoder, as ``onion train --encoder`` takes it.
        engine: ``paddle`` or ``onnx``. Default: that of an exported folder; of others Paddle, or ONNX Runtime where
            Paddle is not installed.
        task: which task of a run of several.
        threads: to compute on. Default: ``$OMP_NUM_THREADS``, or one for every processor, at most 8; Paddle, which has
            one number for all networks of a process, computes on what :func:`onion.device.use_threads` was told last.
        settings: of the task, such as ``threshold=0.3``; of an encoder, those of
            :class:`onion.tasks.embedding.embedder.Embedder`.

    Raises:
        OnionError: there is no such folder or name, it is damaged, an argument is invalid, or the engine is missing.
    """
    if threads is not None and whole("threads", threads) < 1:
        raise DataError(f"threads {threads}: must be 1 or more")
    folder = _folder(name_or_folder)
    manifest = read_manifest(folder) if is_exported(folder) else None
    if manifest is not None and manifest.task == EMBEDDING:
        _refuse_for_vectors(folder, task, engine, manifest.format)
        if threads is not None and manifest.format == PADDLE:
            use_threads(threads)
        return VectorModel(_embedder(partial(Embedder.from_exported, threads=threads), folder, settings))
    if manifest is not None or (folder / RUN_FILE).is_file():
        if threads is not None and (engine == PADDLE or (engine is None and needs_paddle(folder))):
            use_threads(threads)
        return Model(Predictor.load(folder, settings, task, engine, threads))
    _refuse_for_vectors(name_or_folder, task, engine, PADDLE)
    if threads is not None:
        use_threads(threads)
    return VectorModel(_embedder(Embedder.from_pretrained, folder, settings))


def _refuse_for_vectors(place: str | Path, task: str | None, engine: str | None, own: str) -> None:
    if task is not None:
        raise DataError(f"{shown(str(place))} is an encoder, which has no task")
    if engine not in (None, own):
        raise DataError(
            f"{shown(str(place))} is an encoder for the engine {own}; onion export --encoder makes one of it for "
            "another engine"
        )


def _embedder(load: Callable[..., Embedder], folder: Path, settings: Mapping[str, Any]) -> Embedder:
    """Load an encoder with settings.

    Raises:
        DataError: it has no such setting.
    """
    known = ("pooling", "layer", "normalize", "max_length", "batch_size")
    odd = [name for name in settings if name not in known]
    if odd:
        raise DataError(f"unknown setting {odd[0]!r}; an encoder has {', '.join(known)}")
    return load(folder, **settings)


def _folder(name_or_folder: str | Path) -> Path:
    """Return a folder, or that of a name, downloaded if necessary."""
    folder = Path(name_or_folder)
    return folder if folder.exists() else hub.resolve(name_or_folder)
