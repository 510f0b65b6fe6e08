"""Prediction in Python: the runner that was trained, with everything that turns texts into batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from onion import Forward, Runner
from onion.errors import DataError
from onion.inference import inference_runner
from onion.messages import listed, shown
from onion.models.tokenizer import Tokenizer
from onion.tasks.collector import Collector
from onion.tasks.data.features.examples import Example, Examples
from onion.tasks.data.features.text_checks import Tally
from onion.tasks.export.engines import innermost_item
from onion.tasks.export.exported_network import ExportedNetwork
from onion.tasks.export.names import POOLING_FILE
from onion.tasks.finetune.learned_weights import best_weights
from onion.tasks.finetune.recipes import prediction_onion
from onion.tasks.finetune.run_files import TASK_FILE, read_json
from onion.tasks.finetune.run_folder import find_run, read_record
from onion.tasks.networks.paths import ENCODER
from onion.tasks.registry import recorded_task
from onion.tasks.task import Task

if TYPE_CHECKING:
    from paddle import nn

CHUNK = 1024
"""Rows of a file that are in memory."""


@attrs.frozen
class Predictor:
    """Predict with a trained runner, or with the folder of a run.

        predictor = Predictor(task, training, tokenizer)    # the runner itself, with its current weights
        predictor = Predictor.load("run")                   # of ``onion train``
        for predicted in predictor(task.text_rows(["a gripping film"])):
            print(predicted)

    Attributes:
        task: as in training.
        onion: the runner; the attribute holds what ``onion.inference.inference_runner`` makes of it.
        tokenizer: as in training.

    Raises:
        CompositionError: the runner has no network, or several.
    """

    task: Task
    onion: Runner = attrs.field(converter=inference_runner)
    tokenizer: Tokenizer

    @classmethod
    def load(
        cls,
        folder: str | Path,
        settings: Mapping[str, Any] | None = None,
        task_name: str | None = None,
        engine: str | None = None,
        threads: int | None = None,
    ) -> Predictor:
        """Load the best checkpoint of a run's folder.

        Args:
            folder: of ``onion train`` or ``onion export``, or the name ``OWNER/NAME[@REVISION]`` of a model from
                ``onion push``.
            task_name: which task of a run of several; of a run of one, None.
            settings: of the task, instead of those that it was trained with; see ``Task.adjusted``.
            engine: ``paddle`` or ``onnx`` (ONNX Runtime). Default: that of an exported folder; of others Paddle, or
                ONNX Runtime where Paddle is not installed.
            threads: that ONNX Runtime computes on. Default: as :func:`onion.device.use_threads`.

        Raises:
            CheckpointError: the folder has no run, or no complete checkpoint.
            WeightsError: the model cannot be downloaded.
            DataError: a setting is fixed by the training, or invalid; there is no such engine.
            OnionError: the engine is not installed.
        """
        folder = find_run(folder)
        task = read_task(folder, task_name).adjusted(settings or {})
        innermost = innermost_item(folder, task, partial(_weights, folder, task_name), engine, threads)
        return cls(task, Runner(innermost), Tokenizer.from_pretrained(folder))

    @property
    def network(self) -> nn.Layer:
        """The network that predicts."""
        return self.onion[Forward].network

    def __call__(self, rows: Iterable[Any], notes: Counter[str] | None = None, chunk: int = CHUNK) -> Iterator[Any]:
        """Yield the prediction for each row, in order.

        Args:
            rows: of the task: ``task.rows(path, labelled=False)``, ``task.text_rows(texts)``.
            notes: receives warnings about the rows, with counts. Default: they are dropped.
            chunk: rows in memory at a time.
        """
        rows, notes = iter(rows), Counter() if notes is None else notes
        tally = Tally(self.tokenizer)
        while some := list(islice(rows, chunk)):
            made = self.task.features(some, self.tokenizer, False, notes)
            tally.add(made)
            yield from self.task.predictions(some, *self.decoded(made))
        tally.note(notes)

    def decoded(self, made: Sequence[Example]) -> tuple[Sequence[Example], Sequence[Any]]:
        """Return the examples, and of each what the network's outputs were decoded to; for ``Task.predictions``.

        Args:
            made: of ``Task.features``.
        """
        items, pad_id = self.task.predict_items(self.tokenizer), self.tokenizer.pad_id
        if len(made) == 1 and not items and isinstance(self.network, ExportedNetwork):
            batch = self.task.collate(made, pad_id)  # a loop over one batch would take longer than small models do
            return made, self.network.decode(self.network(batch), batch)
        examples = Examples.of(made)
        collector = Collector(len(examples))
        prediction_onion(self.task, self.onion, examples, collector, pad_id, items).run(passes=1)
        return examples, collector.found


def _weights(folder: Path, task_name: str | None) -> Mapping[str, Any]:
    weights = best_weights(folder)
    return weights if task_name is None else weights_of_task(weights, head_of(folder, task_name))


def read_task(folder: Path, name: str | None = None) -> Task:
    """Return the task of a run's folder, or one of several by its name.

    Raises:
        CheckpointError: the folder holds no run, or a damaged one.
        DataError: a run of several tasks has none of that name, or no name was given; or an encoder was exported there.
    """
    if (folder / POOLING_FILE).is_file() and not (folder / TASK_FILE).is_file():
        raise DataError(f"{folder} holds an exported encoder, which has no task; onion embed takes it")
    read_record(folder)
    fitted = read_json(folder, TASK_FILE)
    tasks = fitted.get("tasks") if isinstance(fitted, dict) else None
    if not isinstance(tasks, dict):
        if name is not None:
            raise DataError(f"--task: {folder} holds one task; leave it out")
        return recorded_task(fitted, folder / TASK_FILE)
    if name not in tasks:
        told = "choose one with --task" if name is None else f"there is no {shown(name)}"
        raise DataError(f"{folder} holds several tasks, {listed(tasks)}; {told}")
    return recorded_task(tasks[name], folder / TASK_FILE)


def head_of(folder: Path, name: str) -> str:
    """Return the name of the task of a run whose head a task uses; mostly its own."""
    entry = read_record(folder).get("tasks", {}).get(name, {})
    return entry.get("share_head_with") or name


def weights_of_task(weights: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return, of the weights of a MultiHead, those of the network of one task by their paths in it."""
    head = f"networks.{name}."
    own = {path.removeprefix(head): array for path, array in weights.items() if path.startswith(head)}
    return {**{path: array for path, array in weights.items() if path.startswith(ENCODER)}, **own}
