"""The jobs behind ``onion evaluate`` and ``onion predict``; invalid folders, files and lines raise OnionError."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

from tqdm import tqdm

from onion.data.opening import is_fed
from onion.errors import DataError
from onion.tasks.collector import Collector
from onion.tasks.data.carried import carried
from onion.tasks.data.features.cache import cached_features
from onion.tasks.data.features.examples import Examples
from onion.tasks.data.prepared import prepared
from onion.tasks.data.rows import STANDARD_INPUT, decoded
from onion.tasks.data.texts import tell_notes
from onion.tasks.finetune.loop_settings import TEST_BATCH_SIZE
from onion.tasks.finetune.predictor import CHUNK, Predictor, read_task
from onion.tasks.finetune.recipes import evaluation_onion
from onion.tasks.finetune.run_files import write_json
from onion.tasks.finetune.run_folder import read_record, trained_columns
from onion.tasks.reports.report import check_folder
from onion.tasks.task import Task

CARRIED = "input."
"""Before the name of a carried column that a prediction has too."""


def evaluate(
    folder: Path,
    data: str | Path,
    settings: Mapping[str, Any] | None = None,
    task_name: str | None = None,
    columns: Mapping[str, str] | None = None,
    report: str | Path | None = None,
) -> dict[str, Any]:
    """Measure the best checkpoint of a run on a labelled file; return its figures and the number of rows.

    ``settings`` and ``task_name`` here and below are those of :meth:`Predictor.load`; ``columns`` are those of
    ``onion.tasks.data.prepared.prepared``, by default the ones of the training.

    Args:
        folder: of ``onion train``.
        data: the file.
        settings: see above.
        task_name: see above.
        columns: see above.
        report: a folder for ``report.json``, with the figures, and what ``Task.report`` gives: figures of each class,
            the confusion matrix, the errors. It is new or empty, or has an earlier report. Default: none is written.

    Raises:
        OnionError: a folder or the file are not what they should be.
    """
    if report is not None:
        check_folder(Path(report))
    predictor = Predictor.load(folder, settings, task_name)
    task, pad_id = predictor.task, predictor.tokenizer.pad_id
    path = prepared(data, _columns(folder, task_name, columns))
    examples = cached_features(task, path, predictor.tokenizer)
    tell_notes(str(data), examples.notes)
    collector = Collector(len(examples))
    record = read_record(folder)  # words are masked as in the tests of the training: by its seed and its batches
    items = [*([collector] if report else []), *task.eval_items(predictor.tokenizer, record["seed"])]
    size = record.get("test_batch_size", TEST_BATCH_SIZE)
    network, metric = predictor.network, task.metric(path)
    tested = evaluation_onion(task, network, examples, metric, pad_id, items, batch_size=size).run(passes=1)
    figures = {**tested.metrics, "rows": 1 + int(examples.columns["row"].values[-1])}
    if report is not None:
        rows = list(task.rows(path, labelled=True))
        made = task.report(rows, _predictions(task, rows, examples, collector.found))
        made.write(report, {"run": str(folder), "task": task_name or task.name, "input": str(data), "figures": figures})
    return figures


def _predictions(task: Task, rows: Sequence[Any], examples: Examples, decoded: Sequence[Any]) -> Iterator[Any]:
    """Yield predictions once they are asked for: not every task predicts from what it decodes in an evaluation."""
    yield from task.predictions(rows, examples, decoded)


def _columns(folder: Path, task_name: str | None, columns: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the columns that were asked for; by default those of the training."""
    return trained_columns(folder, task_name) if columns is None else columns


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
    cells_of_rows: Iterable[Mapping[str, Any]] = list(carried(path, data, carry)) if carry else repeat({})
    if not is_fed(path):  # a pipe can be read once only
        for _ in task.rows(path, labelled=False):
            pass  # a row that is wrong is told before anything is put out
    predictor = Predictor.load(folder, settings, task_name)
    rows = tqdm(predictor.task.rows(path, labelled=False), unit=" rows", disable=None)  # on a terminal only
    for cells, predicted in zip(cells_of_rows, _numbered(predictor, rows, str(data)), strict=False):
        # The gold label is called "label", and so is the predicted one.
        yield {"index": predicted["index"], **_apart(cells, predicted), **predicted}


def _apart(cells: Mapping[str, Any], predicted: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{CARRIED}{name}" if name in predicted else name: cell for name, cell in cells.items()}


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
