"""Transformers' classes for our tasks' networks, and their names of the heads' parameters.

Our heads are one linear layer, ``classifier``, over the same vectors as theirs. What has no counterpart, such as a CRF
or the head of a task that a user has registered, is stored as ``classifier.PATH``, which readers of encoders ignore.

Source: transformers ``models/{bert,electra,ernie,roberta,xlnet}/modeling_*.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from onion.tasks.task import Task

LAYER = "classifier."
"""Our name of the linear layer; also where parameters without a counterpart are stored."""

CLASSES = {"bert": "Bert", "electra": "Electra", "ernie": "Ernie", "roberta": "Roberta", "xlnet": "XLNet"}
"""Family -> what the names of its classes begin with."""

_SENTENCE = {
    "bert": "classifier.",
    "electra": "classifier.out_proj.",
    "ernie": "classifier.",
    "roberta": "classifier.out_proj.",
    "xlnet": "logits_proj.",
}


@attrs.frozen
class Kind:
    """What transformers and the hub call a kind of task.

    Attributes:
        model: what the names of the classes end with.
        pipeline: the hub's name of the kind of task.
        heads: family -> the name of the linear layer.
        problem: the value of ``problem_type`` in the config, which determines their loss.
    """

    model: str
    pipeline: str
    heads: Mapping[str, str]
    problem: str | None = None


def _sentence(pipeline: str, problem: str | None) -> Kind:
    return Kind("ForSequenceClassification", pipeline, _SENTENCE, problem)


KINDS = {
    "classification": _sentence("text-classification", "single_label_classification"),
    "regression": _sentence("text-classification", "regression"),
    "matching": _sentence("text-ranking", None),
    "multilabel": _sentence("text-classification", "multi_label_classification"),
    "token-classification": Kind("ForTokenClassification", "token-classification", dict.fromkeys(CLASSES, LAYER)),
    "question-answering": Kind("ForQuestionAnswering", "question-answering", dict.fromkeys(CLASSES, "qa_outputs.")),
    "masked-lm": Kind("ForMaskedLM", "fill-mask", {}),
}
"""Task -> kind; tasks that users have registered have none."""

SIMPLE = "Simple"
"""Ends the name of XLNet's class for questions that has the same head as those of the other families."""

POOLER_COPIES = {"roberta": "classifier.dense."}
"""Family -> where transformers' classifier has the layer that is our encoder's pooler; it is stored as both."""


def pooler_copy(task: str, family: str) -> str | None:
    """Return where a classifier has another copy of the pooler; None: nowhere."""
    return POOLER_COPIES.get(family) if task in KINDS and KINDS[task].heads is _SENTENCE else None


def class_of(task: str, family: str) -> str | None:
    """Return the name of transformers' class for a task over an encoder; None: it has none."""
    if task not in KINDS or family not in CLASSES:
        return None
    simple = SIMPLE if (task, family) == ("question-answering", "xlnet") else ""
    return f"{CLASSES[family]}{KINDS[task].model}{simple}"


def stored_names(task: str, family: str) -> dict[str, tuple[str, bool]]:
    """Return name in the file -> (our path, whether it is transposed), of the head's linear layer."""
    layer = KINDS[task].heads.get(family) if task in KINDS else None
    if layer is None:
        return {}
    return {f"{layer}{part}": (f"{LAYER}{part}", part == "weight") for part in ("weight", "bias")}


def config_of(task: Task, family: str) -> dict[str, Any]:
    """Return the keys of ``config.json`` by which transformers builds the network; of an unknown task, none."""
    found = class_of(task.name, family)
    if found is None:
        return {}
    keys: dict[str, Any] = {"architectures": [found]}
    if KINDS[task.name].problem is not None:
        keys["problem_type"] = KINDS[task.name].problem
    if KINDS[task.name].heads is _SENTENCE or task.name == "token-classification":
        labels = _outputs(task)
        keys["id2label"] = {str(number): label for number, label in enumerate(labels)}
        keys["label2id"] = {label: number for number, label in enumerate(labels)}
    return keys


def _outputs(task: Task) -> list[str]:
    """Return the name of each output of a head: the labels, or the number that it gives."""
    labels = getattr(task, "labels", None)
    return list(labels) if labels and getattr(task, "learning", None) != "pairwise" else ["value"]
