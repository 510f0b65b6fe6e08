"""README.md of a model: what it is, how to use it, what it was trained on and how, and how good it is.

The front matter follows https://huggingface.co/docs/hub/model-cards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import attrs
import paddle

import onion
from onion.models.downloads.repository import is_repository
from onion.models.downloads.sources import REPOSITORIES
from onion.tasks.data.prepared import HUB
from onion.tasks.finetune.run_folder import FITTED
from onion.tasks.publishing.transformers_names import KINDS, class_of
from onion.tasks.task import Task

TOLD = ("encoder", "train", "dev", "train_sha256", "dev_sha256", "tokenizer_sha256", "options", FITTED, "task")
"""Keys of the record that are no settings, or are told apart from them."""


@attrs.frozen
class Trained:
    """What a card tells of a training.

    Attributes:
        task: as fitted to the training file.
        family: of the encoder.
        record: of the run, without private paths.
        figures: metric -> value on the dev file, of the checkpoint that is published.
        step: of that checkpoint.
        rows: ``train`` and ``dev`` -> number of rows, where it is known.
        drawing: of the onion.
        line: a line of text that the task can predict for.
    """

    task: Task
    family: str
    record: Mapping[str, Any]
    figures: Mapping[str, float]
    step: int
    rows: Mapping[str, int]
    drawing: str
    line: str


def model_card(name: str, trained: Trained, license: str | None = None, languages: Iterable[str] = ()) -> str:
    """Return the text of a model card.

    Args:
        name: ``OWNER/NAME[@BRANCH]``.
        trained: what it tells.
        license: identifier of the hub; None: the card has none.
        languages: codes of ISO 639.
    """
    parts = [
        f"---\n{front_matter(name, trained, license, languages)}\n---",
        f"# {name.partition('@')[0].partition('/')[2]}",
        _summary(trained),
        *_usage(name, trained),
        "## Training data",
        _data(trained),
        f"## Figures\n\n{_figures(trained)}",
        "## Settings\n\n`settings.json` is a config file for `onion train`.",
        table(("setting", "value"), _settings(trained.record)),
        "## The loop",
        _fenced("text", [trained.drawing]),
        f"Pushed with onion {onion.__version__} and Paddle {paddle.__version__}.",
    ]
    return "\n\n".join(parts) + "\n"


def front_matter(name: str, trained: Trained, license: str | None, languages: Iterable[str]) -> str:
    """Return the metadata of a card in YAML, without the lines around it."""
    from huggingface_hub import EvalResult, ModelCardData

    kind, record = KINDS.get(trained.task.name), trained.record
    pipeline = None if kind is None else kind.pipeline
    results = [
        EvalResult(
            task_type=pipeline or trained.task.name,
            dataset_type=_dataset(record["train"]) or "custom",
            dataset_name=str(record["dev"]),
            metric_type=metric,
            metric_value=value,
        )
        for metric, value in trained.figures.items()
        if isfinite(value)
    ]
    data = ModelCardData(
        language=list(languages) or None,
        license=license,
        library_name="onion",
        tags=["onion", "paddlepaddle", trained.task.name],
        base_model=base_model(record),
        datasets=[found] if (found := _dataset(record["train"])) else None,
        metrics=list(trained.figures) or None,
        eval_results=results or None,
        model_name=name.partition("@")[0].partition("/")[2],
        pipeline_tag=pipeline,
    )
    return str(data.to_yaml()).rstrip()


def base_model(record: Mapping[str, Any]) -> str | None:
    """Return the repository of the hub that a training began with; None: it was none, as far as its name shows."""
    given = str(record.get("init_from") or record["encoder"])
    short = given.partition("@")[0]
    found = REPOSITORIES.get(short.lower(), short)
    return found if is_repository(found) and not Path(given).exists() else None


def _dataset(source: str) -> str | None:
    """Return the data set of the hub that was trained on, of ``hf:NAME/CONFIG/SPLIT``; None: files."""
    parts = source.removeprefix(HUB).split("/")
    name = "/".join(parts[:-2] or parts[:1])
    return name if source.startswith(HUB) and len(parts) > 1 and not Path(name).exists() else None


def _summary(trained: Trained) -> str:
    began = trained.record.get("init_from") or trained.record["encoder"]
    made = f"the encoder `{began}` ({trained.family}), fine-tuned"
    if "run_sha256" in trained.record:  # what it was made of is a folder, which says nothing to others
        made = f"some layers of a trained model ({trained.family}), trained by that model (`onion compress`)"
    elif "teacher_sha256" in trained.record:
        made = f"the student `{began}` ({trained.family}) of a trained model, trained by that model (`onion distill`)"
    labels = getattr(trained.task, "labels", None)
    told = f" Its labels: {', '.join(f'`{label}`' for label in labels)}." if labels else ""
    return (
        f"A model for `{trained.task.name}`: {made} with onion, a "
        f"composable training loop for PaddlePaddle (`onion-paddle` on PyPI).{told}"
    )


def _usage(name: str, trained: Trained) -> list[str]:
    commands = [
        'pip install "onion-paddle[cpu]"',
        f"onion tasks {trained.task.name}     # the columns of rows.tsv, and what is predicted",
        f"onion predict --run {name} --input rows.tsv",
        f"onion train --encoder {name} ...     # its encoder, for another task",
    ]
    python = [
        "from onion.tasks.finetune.predictor import Predictor",
        "",
        f"predictor = Predictor.load({json.dumps(name)})",
        f"for predicted in predictor(predictor.task.line_rows([{json.dumps(trained.line, ensure_ascii=False)}])):",
        "    print(predicted)",
    ]
    found = class_of(trained.task.name, trained.family)
    theirs = [] if found is None else [f"transformers loads it as `{found}`."]
    return ["## Use", _fenced("sh", commands), _fenced("python", python), *theirs]


def _fenced(kind: str, lines: Iterable[str]) -> str:
    return "\n".join([f"```{kind}", *lines, "```"])


def _data(trained: Trained) -> str:
    record = trained.record
    rows = (
        (what, f"`{record[key]}`", trained.rows.get(key, ""), f"`{record[digest]}`" if record.get(digest) else "")
        for what, key, digest in (("training", "train", "train_sha256"), ("dev", "dev", "dev_sha256"))
        if record.get(key)
    )
    return table(("", "file", "rows", "SHA-256"), rows)


def _figures(trained: Trained) -> str:
    if not trained.figures:
        return "None: there was no dev file to test it on."
    rows = ((metric, f"{value:.4f}") for metric, value in trained.figures.items())
    return f"On the dev file, at step {trained.step}:\n\n{table(('metric', 'value'), rows)}"


def _settings(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return name and value of the settings, those of the task among them, as far as they have a value."""
    values = {**{key: value for key, value in record.items() if key not in TOLD}, **record.get("options", {})}
    if not record.get("lora_rank"):
        values.pop("lora_dropout", None)  # of adapters that there are none of
    return [
        (f"`{key}`", f"`{json.dumps(value, ensure_ascii=False)}`")
        for key, value in values.items()
        if value is not False and value not in (None, [], {})  # 0 is a value, although it equals False
    ]


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table in Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *([_cell(each) for each in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    return " ".join(str(value).replace("|", "\\|").split())
