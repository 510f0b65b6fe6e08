"""The jobs behind ``onion evaluate`` and ``onion predict``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import attrs
from paddle import nn
from tqdm import tqdm

from onion.errors import CheckpointError, DataError
from onion.items.gradient_machine import load_network
from onion.items.saver import best_checkpoint
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.tokenizer import Tokenizer
from onion.tasks.catalogue import recorded_task
from onion.tasks.collector import Collector
from onion.tasks.features.cache import cached_features
from onion.tasks.features.examples import Examples
from onion.tasks.jobs.initial import NETWORK
from onion.tasks.jobs.run_folder import RUN_FILE, TASK_FILE, read_json, read_record, write_json
from onion.tasks.onions import evaluation_onion, prediction_onion
from onion.tasks.rows import decoded
from onion.tasks.task import Task
from onion.tasks.texts import tell_notes

CHUNK = 1024
"""Rows of a file that are in memory."""


@attrs.frozen
class Model:
    """A trained network with all it needs to read files.

    Attributes:
        task: as in training.
        network: in evaluation mode, with the weights of the best checkpoint.
        tokenizer: as in training.
    """

    task: Task
    network: nn.Layer
    tokenizer: Tokenizer

    @classmethod
    def load(cls, folder: Path) -> Model:
        """Load the best checkpoint of a run's folder.

        Raises:
            CheckpointError: the folder holds no run, or no whole checkpoint.
        """
        task = read_task(folder)
        best = best_checkpoint(folder)
        if NETWORK not in best.items:
            raise CheckpointError(f"{folder / RUN_FILE}: the run has saved no {NETWORK}; was another onion run there?")
        network = task.network(Encoder(EncoderConfig.read(folder / "config.json")))
        load_network(network, best.items[NETWORK])
        network.eval()
        return cls(task, network, Tokenizer.from_pretrained(folder))

    def predictions(self, rows: Iterable[Any], notes: Counter[str], chunk: int = CHUNK) -> Iterator[Any]:
        """Give what is predicted for each row in order; ``chunk`` rows are in memory at a time."""
        rows, pad_id = iter(rows), self.tokenizer.pad_id
        while some := list(islice(rows, chunk)):
            examples = Examples.of(self.task.features(some, self.tokenizer, False, notes))
            collector = Collector(len(examples))
            rings = self.task.prediction_rings(self.tokenizer)
            prediction_onion(self.task, self.network, examples, collector, pad_id, rings).run(passes=1)
            yield from self.task.predictions(some, examples, collector.found)


def read_task(folder: Path) -> Task:
    """Return the task of a run's folder.

    Raises:
        CheckpointError: the folder holds no run, or a damaged one.
    """
    read_record(folder)
    return recorded_task(read_json(folder, TASK_FILE), folder / TASK_FILE)


def evaluate(folder: Path, data: str) -> dict[str, Any]:
    """Measure the best checkpoint of a run on a labelled file; return its figures and the number of rows.

    Raises:
        OnionError: the folder or the file are not what they should be.
    """
    model = Model.load(folder)
    task, pad_id = model.task, model.tokenizer.pad_id
    examples = cached_features(task, data, model.tokenizer)
    tell_notes(data, examples.notes)
    rings = task.test_rings(model.tokenizer, read_record(folder)["seed"])
    tested = evaluation_onion(task, model.network, examples, task.metric(data), pad_id, rings).run(passes=1)
    return {**tested.metrics, "rows": 1 + int(examples.columns["row"].values[-1])}


def predict(folder: Path, data: str) -> Iterator[dict[str, Any]]:
    """Give what is predicted for each row of a file, with its ``index``.

    Raises:
        OnionError: the folder or the file are not what they should be.
    """
    if not (Path(data).is_fifo() or Path(data).is_char_device()):  # a pipe can be read once only
        for _ in read_task(folder).rows(data, labelled=False):
            pass  # a row that is wrong is told before anything is put out
    model = Model.load(folder)
    notes: Counter[str] = Counter()
    rows = tqdm(model.task.rows(data, labelled=False), unit=" rows", disable=None)  # on a terminal only
    for index, predicted in enumerate(model.predictions(rows, notes)):
        yield {"index": index, **predicted}
    tell_notes(data, notes)


def write_files(folder: Path, predicted: Sequence[Any], out: Path) -> list[Path]:
    """Write the files that a task makes of all its predictions (``Task.files``); return their paths.

    Args:
        folder: of ``onion train``.
        predicted: everything that :func:`predict` gave.
        out: where to; made if it is missing. Each file is replaced as a whole or not at all.

    Raises:
        DataError: the task writes no files.
        CheckpointError: the disk refused.
    """
    task = read_task(folder)
    files = task.files(predicted)
    if not files:
        raise DataError(f"--files: the task {task.name} has none; its predictions are lines, see --output")
    for name, value in files.items():
        write_json(out / name, value)
    return [out / name for name in files]


def predict_lines(folder: Path, lines: Iterable[bytes], chunk: int = CHUNK) -> Iterator[dict[str, Any]]:
    """Give what is predicted for each line of text (see ``Task.line_rows``), with its ``index``.

    Args:
        folder: of ``onion train``.
        lines: UTF-8; read when their turn comes.
        chunk: lines that are read before the first of them is answered.

    Raises:
        OnionError: the folder or a line are not what they should be.
    """
    model = Model.load(folder)
    notes: Counter[str] = Counter()
    for index, predicted in enumerate(model.predictions(model.task.line_rows(decoded(lines)), notes, chunk)):
        yield {"index": index, **predicted}
    tell_notes("standard input", notes)


def predict_texts(folder: Path, texts: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Give what is predicted for each text, with the text itself.

    Raises:
        OnionError: the folder is not what it should be, or the model does not read single texts.
    """
    model = Model.load(folder)
    notes: Counter[str] = Counter()
    rows = model.task.text_rows(texts)
    for text, predicted in zip(texts, model.predictions(rows, notes), strict=True):
        yield {"text_a": text, **predicted}
    tell_notes("--text", notes)
