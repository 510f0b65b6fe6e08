"""The jobs behind ``onion evaluate`` and ``onion predict``; invalid folders, files and lines raise OnionError."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from onion.data.opening import is_fed
from onion.errors import DataError
from onion.tasks.data.features.cache import cached_features
from onion.tasks.data.rows import STANDARD_INPUT, decoded
from onion.tasks.data.texts import tell_notes
from onion.tasks.finetune.predictor import CHUNK, Predictor, read_task
from onion.tasks.finetune.recipes import evaluation_onion
from onion.tasks.finetune.run_folder import read_record, write_json
from onion.tasks.task import Task


def evaluate(folder: Path, data: str, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Measure the best checkpoint of a run on a labelled file; return its figures and the number of rows.

    ``settings`` are those of :meth:`Predictor.load`, here and below.
    """
    predictor = Predictor.load(folder, settings)
    task, pad_id = predictor.task, predictor.tokenizer.pad_id
    examples = cached_features(task, data, predictor.tokenizer)
    tell_notes(data, examples.notes)
    train_items = task.eval_items(predictor.tokenizer, read_record(folder)["seed"])
    tested = evaluation_onion(task, predictor.network, examples, task.metric(data), pad_id, train_items).run(passes=1)
    return {**tested.metrics, "rows": 1 + int(examples.columns["row"].values[-1])}


def predict(folder: Path, data: str, settings: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the prediction for each row of a file, with its ``index``."""
    if not is_fed(Path(data)):  # a pipe can be read only once
        for _ in read_task(folder).rows(data, labelled=False):
            pass  # report an invalid row before the first prediction
    predictor = Predictor.load(folder, settings)
    rows = tqdm(predictor.task.rows(data, labelled=False), unit=" rows", disable=None)  # only on a terminal
    yield from _numbered(predictor, rows, data)


def task_with_files(folder: Path) -> Task:
    """Return the task of a run if it writes files, before anything is predicted.

    Raises:
        DataError: the task writes no files.
        CheckpointError: the folder holds no run, or a damaged one.
    """
    task = read_task(folder)
    if type(task).files is Task.files:
        raise DataError(f"--files: the task {task.name} has none; its predictions are lines, see --output")
    return task


def write_files(folder: Path, predicted: Sequence[Any], out: Path) -> list[Path]:
    """Write the files that a task makes of all its predictions (``Task.files``); return their paths.

    Args:
        folder: of ``onion train``.
        predicted: all predictions of :func:`predict`.
        out: the folder to write to, created if missing. Each file is replaced atomically.

    Raises:
        DataError: the task writes no files.
        CheckpointError: writing failed.
    """
    files = task_with_files(folder).files(predicted)
    for name, value in files.items():
        write_json(out / name, value)
    return [out / name for name in files]


def predict_lines(
    folder: Path, lines: Iterable[bytes], chunk: int = CHUNK, settings: Mapping[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the prediction for each line of text (see ``Task.line_rows``), with its ``index``.

    Args:
        folder: of ``onion train``.
        lines: UTF-8; read on demand.
        chunk: lines that are read before the first prediction.
        settings: see :meth:`Predictor.load`.
    """
    predictor = Predictor.load(folder, settings)
    yield from _numbered(predictor, predictor.task.line_rows(decoded(lines)), str(STANDARD_INPUT), chunk)


def _numbered(predictor: Predictor, rows: Iterable[Any], where: str, chunk: int = CHUNK) -> Iterator[dict[str, Any]]:
    notes: Counter[str] = Counter()
    for index, predicted in enumerate(predictor(rows, notes, chunk)):
        yield {"index": index, **predicted}
    tell_notes(where, notes)


def predict_texts(
    folder: Path, texts: Sequence[str], settings: Mapping[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the prediction for each text, with the text."""
    predictor = Predictor.load(folder, settings)
    notes: Counter[str] = Counter()
    rows = predictor.task.text_rows(texts)
    for text, predicted in zip(texts, predictor(rows, notes), strict=True):
        yield {"text_a": text, **predicted}
    tell_notes("--text", notes)
