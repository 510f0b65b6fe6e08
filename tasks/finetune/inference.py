"""The jobs behind ``onion evaluate`` and ``onion predict``; invalid folders, files and lines raise OnionError."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from tqdm import tqdm

from onion.data.files import FORMATS
from onion.data.opening import is_fed
from onion.errors import DataError
from onion.tasks.data.features.cache import cached_features
from onion.tasks.data.features.hashing import ending_of
from onion.tasks.data.prepared import prepared
from onion.tasks.data.rows import STANDARD_INPUT, Row, decoded, file_rows, holds_half_a_character
from onion.tasks.data.texts import tell_notes
from onion.tasks.finetune.predictor import CHUNK, Predictor, read_task
from onion.tasks.finetune.recipes import evaluation_onion
from onion.tasks.finetune.run_folder import read_record, write_json
from onion.tasks.task import Task

CARRIED = "input."
"""Before the name of a carried column that a prediction has too."""


def evaluate(
    folder: Path,
    data: str | Path,
    settings: Mapping[str, Any] | None = None,
    task_name: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Measure the best checkpoint of a run on a labelled file; return its figures and the number of rows.

    ``settings`` and ``task_name`` here and below are those of :meth:`Predictor.load`; ``columns`` are those of
    ``onion.tasks.data.prepared.prepared``, by default the ones of the training.

    Raises:
        OnionError: the folder or the file are not what they should be.
    """
    predictor = Predictor.load(folder, settings, task_name)
    task, pad_id = predictor.task, predictor.tokenizer.pad_id
    path = prepared(data, _columns(folder, task_name, columns))
    examples = cached_features(task, path, predictor.tokenizer)
    tell_notes(str(data), examples.notes)
    train_items = task.eval_items(predictor.tokenizer, read_record(folder)["seed"])
    tested = evaluation_onion(task, predictor.network, examples, task.metric(path), pad_id, train_items).run(passes=1)
    return {**tested.metrics, "rows": 1 + int(examples.columns["row"].values[-1])}


def _columns(folder: Path, task_name: str | None, columns: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the columns that were asked for; by default those of the training, which older runs have not."""
    record = read_record(folder)
    trained: Mapping[str, Any] = record if task_name is None else record["tasks"][task_name]
    return trained.get("columns", {}) if columns is None else columns


def predict(
    folder: Path,
    data: str | Path,
    settings: Mapping[str, Any] | None = None,
    task_name: str | None = None,
    columns: Mapping[str, str] | None = None,
    carry: Sequence[str] = (),
) -> Iterator[dict[str, Any]]:
    """Give what is predicted for each row of a file, with its ``index`` and the columns of the row that are carried.

    Raises:
        OnionError: the folder or the file are not what they should be.
    """
    task = read_task(folder, task_name)
    path = prepared(data, _columns(folder, task_name, columns), labelled=False)
    carried = _carried(path, data, carry)
    if not is_fed(path):  # a pipe can be read once only
        for _ in task.rows(path, labelled=False):
            pass  # a row that is wrong is told before anything is put out
    predictor = Predictor.load(folder, settings, task_name)
    rows = tqdm(predictor.task.rows(path, labelled=False), unit=" rows", disable=None)  # on a terminal only
    for cells, predicted in zip(carried, _numbered(predictor, rows, str(data)), strict=False):
        # The gold label is called "label", and so is the predicted one.
        yield {"index": predicted["index"], **_apart(cells, predicted), **predicted}


def _apart(cells: Mapping[str, Any], predicted: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{CARRIED}{name}" if name in predicted else name: cell for name, cell in cells.items()}


def _carried(path: Path, data: str | Path, names: Sequence[str]) -> Iterable[Mapping[str, Any]]:
    """Yield the cells that are carried of each row; without names nothing, as often as it is asked for."""
    if not names:
        return repeat({})
    if is_fed(path) or ending_of(path) not in FORMATS:
        raise DataError(f"--carry: {data} has no rows that can be read a second time; give a {', '.join(FORMATS)} file")
    return [_printable(row) for row in file_rows(path, names)]


def _printable(row: Row) -> Mapping[str, Any]:
    """Return the cells of a row, which have to be written: JSON can hold half of a character, UTF-8 cannot."""
    for name, cell in row.cells.items():
        if holds_half_a_character(json.dumps(cell, ensure_ascii=False, default=str)):
            raise row.error(f"{name} has an unpaired surrogate (\\ud800 to \\udfff), which --carry cannot write")
    return row.cells


def task_with_files(folder: Path, task_name: str | None = None) -> Task:
    """Return the task of a run, which has files to write; where it has none, say so before anything is predicted.

    Raises:
        DataError: the task writes no files.
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
        CheckpointError: writing failed.
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
    """Yield the prediction for each line of text (see ``Task.line_rows``), with its ``index``.

    Args:
        folder: of ``onion train``.
        lines: UTF-8; read on demand.
        chunk: lines that are read before the first prediction.
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
