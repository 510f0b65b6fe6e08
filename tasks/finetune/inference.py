"""The jobs behind ``onion evaluate`` and ``onion predict``."""

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


def evaluate(
    folder: Path, data: str, settings: Mapping[str, Any] | None = None, task_name: str | None = None
) -> dict[str, Any]:
    """Measure the best checkpoint of a run on a labelled file; return its figures and the number of rows.

    ``settings`` and ``task_name`` here and below are those of :meth:`Predictor.load`.

    Raises:
        OnionError: the folder or the file are not what they should be.
    """
    predictor = Predictor.load(folder, settings, task_name)
    task, pad_id = predictor.task, predictor.tokenizer.pad_id
    examples = cached_features(task, data, predictor.tokenizer)
    tell_notes(data, examples.notes)
    train_items = task.eval_items(predictor.tokenizer, read_record(folder)["seed"])
    tested = evaluation_onion(task, predictor.network, examples, task.metric(data), pad_id, train_items).run(passes=1)
    return {**tested.metrics, "rows": 1 + int(examples.columns["row"].values[-1])}


def predict(
    folder: Path, data: str, settings: Mapping[str, Any] | None = None, task_name: str | None = None
) -> Iterator[dict[str, Any]]:
    """Give what is predicted for each row of a file, with its ``index``.

    Raises:
        OnionError: the folder or the file are not what they should be.
    """
    if not is_fed(Path(data)):  # a pipe can be read once only
        for _ in read_task(folder, task_name).rows(data, labelled=False):
            pass  # a row that is wrong is told before anything is put out
    predictor = Predictor.load(folder, settings, task_name)
    rows = tqdm(predictor.task.rows(data, labelled=False), unit=" rows", disable=None)  # on a terminal only
    yield from _numbered(predictor, rows, data)


def task_with_files(folder: Path, task_name: str | None = None) -> Task:
    """Return the task of a run, which has files to write; where it has none, say so before anything is predicted.

    Raises:
        DataError: the task of the folder writes no files.
        CheckpointError: the folder holds no run, or a damaged one.
    """
    task = read_task(folder, task_name)
    if type(task).files is Task.files:
        raise DataError(f"--files: the task {task.name} has none; its predictions are lines, see --output")
    return task


def write_files(folder: Path, predicted: Sequence[Any], out: Path, task_name: str | None = None) -> list[Path]:
    """Write the files that a task makes of all its predictions (``Task.files``); return their paths.

    Args:
        folder: of ``onion train``.
        predicted: everything that :func:`predict` gave.
        out: where to; made if it is missing. Each file is replaced as a whole or not at all.
        task_name: see :meth:`Predictor.load`.

    Raises:
        DataError: the task writes no files.
        CheckpointError: the disk refused.
    """
    files = task_with_files(folder, task_name).files(predicted)
    for name, value in files.items():
        write_json(out / name, value)
    return [out / name for name in files]


def predict_lines(
    folder: Path,
    lines: Iterable[bytes],
    chunk: int = CHUNK,
    settings: Mapping[str, Any] | None = None,
    task_name: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Give what is predicted for each line of text (see ``Task.line_rows``), with its ``index``.

    Args:
        folder: of ``onion train``.
        lines: UTF-8; read when their turn comes.
        chunk: lines that are read before the first of them is answered.
        settings: see :meth:`Predictor.load`.
        task_name: see :meth:`Predictor.load`.

    Raises:
        OnionError: the folder or a line are not what they should be.
    """
    predictor = Predictor.load(folder, settings, task_name)
    yield from _numbered(predictor, predictor.task.line_rows(decoded(lines)), str(STANDARD_INPUT), chunk)


def _numbered(predictor: Predictor, rows: Iterable[Any], where: str, chunk: int = CHUNK) -> Iterator[dict[str, Any]]:
    notes: Counter[str] = Counter()
    for index, predicted in enumerate(predictor(rows, notes, chunk)):
        yield {"index": index, **predicted}
    tell_notes(where, notes)


def predict_texts(
    folder: Path, texts: Sequence[str], settings: Mapping[str, Any] | None = None, task_name: str | None = None
) -> Iterator[dict[str, Any]]:
    """Give what is predicted for each text, with the text itself.

    Raises:
        OnionError: the folder is not what it should be, or the model does not read single texts.
    """
    predictor = Predictor.load(folder, settings, task_name)
    notes: Counter[str] = Counter()
    rows = predictor.task.text_rows(texts)
    for text, predicted in zip(texts, predictor(rows, notes), strict=True):
        yield {"text_a": text, **predicted}
    tell_notes("--text", notes)
