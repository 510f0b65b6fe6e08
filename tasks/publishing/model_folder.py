"""The folder of a trained model for others: what ``onion push`` uploads.

model.safetensors, config.json, tokenizer*    in transformers' layout, which onion reads too
run.json, task.json, settings.json            of the run, with names of files instead of paths
README.md                                     the model card
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onion.checkpointing.run_state import best_checkpoint
from onion.errors import OnionError
from onion.models.families import read_config
from onion.models.pretrained_config import PretrainedConfig
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.data_files import DataFiles
from onion.tasks.data.prepared import HUB
from onion.tasks.export.manifest import refuse_without_checkpoint
from onion.tasks.finetune.learned_weights import weights_in
from onion.tasks.finetune.predictor import head_of, read_task, weights_of_task
from onion.tasks.finetune.recipes import PREFIX
from onion.tasks.finetune.run_files import RUN_FILE, SETTINGS_FILE, TASK_FILE, read_json, write_json, write_text
from onion.tasks.finetune.run_folder import FITTED, read_drawing, read_record
from onion.tasks.masked_lm.task import MaskedLM
from onion.tasks.publishing.model_card import Trained, model_card
from onion.tasks.publishing.transformers_names import config_of
from onion.tasks.publishing.weights import write_network
from onion.tasks.question_answering.task import QuestionAnswering
from onion.tasks.task import Task

CARD = "README.md"
DATA = ("train", "dev")
NO_PATHS = (FITTED, "columns", "labels")
"""Keys of the record whose texts are no paths, even where they look so."""

_FOLDERS = re.compile(r"(?<![\w./-])(?:~|\.{1,2})?/(?:[^\s,()'/]+/)*(?=[^\s,()'/])")
"""The folders of an absolute path, or of one that begins with ``~``, ``.`` or ``..``."""


def write_model(
    run: Path,
    folder: Path,
    name: str,
    task_name: str | None = None,
    license: str | None = None,
    languages: tuple[str, ...] = (),
    task: Task | None = None,
) -> Task:
    """Write the best checkpoint of a run as a model for others, and return its task; the run stays as it is.

    Args:
        run: folder of ``onion train``.
        folder: the target, created if it does not exist; its files of the same names are replaced.
        name: of the model, ``OWNER/NAME[@BRANCH]``, for the model card.
        task_name: which task of a run of several; of a run of one, None.
        license: identifier of the hub, such as ``apache-2.0``. Default: the card has none.
        languages: codes of ISO 639, such as ``zh``. Default: the card has none.
        task: that of the run with other settings. Default: as it was trained.

    Raises:
        CheckpointError: the folder has no run, or no complete checkpoint.
        DataError: there is no such task.
        WeightsError: a file cannot be written.
    """
    refuse_without_checkpoint(run)
    task = task or read_task(run, task_name)
    config, best = read_config(run / "config.json"), best_checkpoint(run)
    weights = weights_in(best, run)
    if task_name is not None:
        weights = weights_of_task(weights, head_of(run, task_name))
    record = _record_of(read_record(run), task_name)
    prefix = PREFIX if task_name is None else f"{task_name}."
    figures = {key.removeprefix(prefix): each for key, each in best.run["metrics"].items() if key.startswith(prefix)}
    tokenizer = Tokenizer.from_pretrained(run)
    trained = Trained(
        task=task,
        family=config.model_type,
        record=_public(record),
        figures=figures,
        step=best.step,
        rows=_rows(record, task),
        drawing=_public_drawing(read_drawing(run)),
        line=_line(task, tokenizer),
    )
    card = model_card(name, trained, license, languages)
    write_network(folder, {path: np.asarray(array) for path, array in weights.items()}, config, task.name)
    write_record(run, folder, task, task_name)
    write_text(folder / CARD, card)
    return task


def write_record(
    run: Path,
    folder: Path,
    task: Task,
    task_name: str | None = None,
    tokenizer: Tokenizer | None = None,
    config: PretrainedConfig | None = None,
) -> None:
    """Write tokenizer, config, settings and task of a run, all that predictions need besides the network.

    Args:
        run: folder of ``onion train``.
        folder: the target, created if it does not exist.
        task: of the run, perhaps with other settings.
        task_name: which task of a run of several.
        tokenizer: Default: that of the run.
        config: of the encoder. Default: that of the run.

    Raises:
        CheckpointError: the folder has no run.
        WeightsError: a file cannot be written.
    """
    config = config or read_config(run / "config.json")
    (tokenizer or Tokenizer.from_pretrained(run)).save_pretrained(folder)
    write_json(folder / "config.json", {**config.to_dict(), **config_of(task, config.model_type)})
    write_json(folder / RUN_FILE, _public(_record_of(read_record(run), task_name)))
    write_json(folder / SETTINGS_FILE, _public(read_json(run, SETTINGS_FILE)))
    write_json(folder / TASK_FILE, task.record())


def _record_of(record: Mapping[str, Any], task_name: str | None) -> dict[str, Any]:
    """Return the record of a run of one task, also where there are several."""
    if task_name is None:
        return dict(record)
    general = {key: value for key, value in record.items() if key != "tasks"}
    own = {key: value for key, value in record["tasks"][task_name].items() if value is not None or key not in general}
    return {**general, **own, FITTED: record[FITTED]["tasks"][task_name]}


def _rows(record: Mapping[str, Any], task: Task) -> dict[str, int]:
    """Return the numbers of rows of the data files, as far as they are still what the training read."""
    try:
        files = DataFiles.of(record["train"], record["dev"], record.get("columns", {}), record["seed"])
        unchanged = {name for name in DATA if files.digests()[f"{name}_sha256"] == record[f"{name}_sha256"]}
        paths = {"train": files.train, "dev": files.dev}
        return {name: sum(1 for _ in task.rows(str(paths[name]), labelled=True)) for name in sorted(unchanged)}
    except (OnionError, KeyError):  # moved, changed or deleted since
        return {}


def _line(task: Task, tokenizer: Tokenizer) -> str:
    """Return a line that the task can predict for."""
    if isinstance(task, QuestionAnswering):
        return "Who wrote it?\tAda wrote it in 1843."
    if isinstance(task, MaskedLM):
        return f"a {tokenizer.tokens([tokenizer.mask_id])[0]} film"
    return "a first text\ta second text" if getattr(task, "pairs", False) else "a gripping film"


def _public(value: Any, name: str = "") -> Any:
    """Return JSON values with names of files where there are paths, which tell about the machine."""
    if name in NO_PATHS:
        return value
    if isinstance(value, dict):
        return {key: _public(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_public(each, name) for each in value]
    if not isinstance(value, str):
        return value
    if name in DATA and not value.startswith(HUB):
        return ",".join(Path(part.strip()).name for part in value.split(","))
    return _FOLDERS.sub("", value)


def _public_drawing(drawing: str) -> str:
    """Return the drawing of an onion with names of files instead of paths."""
    lines = drawing.splitlines() or [""]
    columns = lines[0].find("initialize")
    items = [_FOLDERS.sub("", line[:columns]).rstrip() for line in lines]
    width = max(map(len, items)) + 2
    return "\n".join(f"{item:{width}}{line[columns:]}".rstrip() for item, line in zip(items, lines, strict=True))
