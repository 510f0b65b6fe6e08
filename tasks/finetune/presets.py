"""Settings by name, as the authors of a system published them for a data set.

``ernie/...``: PaddlePaddle/ERNIE, branch static_graph, ``script/zh_task`` and ``script/en_glue``, with the batch of one
GPU; ``ernie-large/...``: the same for the large model. ``palm/...``: the examples of PaddlePALM 2.0; its ATIS example,
which trains two tasks jointly, has a preset for each task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onion.errors import DataError
from onion.messages import shown


def _ernie(task: str, batch: int, passes: int, learning_rate: float, length: int, **more: Any) -> dict[str, Any]:
    """Return settings for a Chinese data set, without warm-up."""
    settings = {
        "task": task,
        "batch_size": batch,
        "passes": passes,
        "learning_rate": learning_rate,
        "max_length": length,
    }
    return {**settings, "warmup_ratio": 0.0, "weight_decay": 0.01, "seed": 1, **more}


def _glue(task: str, batch: int, passes: int, learning_rate: float, length: int = 128) -> dict[str, Any]:
    """Return settings for an English data set: warm-up over a tenth of the steps, no weight decay."""
    return _ernie(task, batch, passes, learning_rate, length, warmup_ratio=0.1, weight_decay=0.0)


def _palm(task: str, batch: int, passes: int, learning_rate: float, length: int, **more: Any) -> dict[str, Any]:
    return _ernie(task, batch, passes, learning_rate, length, warmup_ratio=0.1, **more)


_READING = {"doc_stride": 128, "max_query_length": 64}

_BASE: dict[str, dict[str, Any]] = {
    "ernie/chnsenticorp": _ernie("classification", 24, 10, 5e-5, 256),
    "ernie/bq": _ernie("classification", 64, 3, 3e-5, 128),
    "ernie/lcqmc": _ernie("classification", 32, 3, 2e-5, 128, weight_decay=0.0),
    "ernie/thuc": _ernie("classification", 8, 3, 3e-5, 512),
    "ernie/xnli": _ernie("classification", 64, 3, 1e-4, 512),  # ERNIE: as many pairs as have 8192 tokens
    "ernie/msra-ner": _ernie("token-classification", 16, 6, 5e-5, 256),
    "ernie/cmrc2018": _ernie("question-answering", 16, 2, 3e-5, 512, max_answer_length=100, **_READING),
    "ernie/drcd": _ernie("question-answering", 16, 2, 5e-5, 512, max_answer_length=100, **_READING),
    "ernie/dbqa": _ernie("matching", 8, 3, 2e-5, 512),
    "ernie/cola": _glue("classification", 64, 3, 3e-5),
    "ernie/sst-2": _glue("classification", 32, 4, 2e-5),
    "ernie/mrpc": _glue("classification", 16, 4, 3e-5),
    "ernie/sts-b": _glue("regression", 16, 3, 5e-5),
    "ernie/qqp": _glue("classification", 32, 3, 3e-5),
    "ernie/mnli": _glue("classification", 64, 3, 3e-5),
    "ernie/qnli": _glue("classification", 32, 4, 2e-5),
    "ernie/rte": _glue("classification", 4, 4, 2e-5),
    "ernie/wnli": _glue("classification", 8, 4, 2e-5, 512),
}

_OTHER_IF_LARGE: dict[str, dict[str, Any]] = {
    "chnsenticorp": {"learning_rate": 1e-5},
    "bq": {"learning_rate": 1.5e-5},
    "lcqmc": {"learning_rate": 5e-6},
    "thuc": {"learning_rate": 1.5e-5},
    "xnli": {"learning_rate": 4e-5},
    "msra-ner": {"learning_rate": 1e-5},
    "cmrc2018": {"batch_size": 8},
    "drcd": {"batch_size": 8, "learning_rate": 3e-5},
    "dbqa": {"learning_rate": 1e-5},
    "cola": {"batch_size": 32, "passes": 5},
    "sst-2": {"batch_size": 8},
    "mrpc": {"batch_size": 8},
    "qqp": {"learning_rate": 5e-5},
    "mnli": {"batch_size": 32},
    "rte": {"batch_size": 16, "passes": 5, "learning_rate": 3e-5},
}

_LARGE = {
    name.replace("ernie/", "ernie-large/"): {**settings, **_OTHER_IF_LARGE.get(name.removeprefix("ernie/"), {})}
    for name, settings in _BASE.items()
}

_PALM = {
    "palm/atis-intent": _palm("classification", 16, 20, 2e-5, 128),
    "palm/atis-slots": _palm("token-classification", 16, 20, 2e-5, 128),
    "palm/chnsenticorp": _palm("classification", 8, 10, 5e-5, 256),
    "palm/matching": _palm("matching", 16, 3, 3e-5, 128),
    "palm/tagging": _palm("token-classification", 16, 6, 5e-5, 256),
    "palm/reading": _palm("question-answering", 8, 2, 3e-5, 512, max_answer_length=128, **_READING),
}

PRESETS = {**_BASE, **_LARGE, **_PALM}


def _family(name: str) -> list[str]:
    return name.split("/")


def preset(name: str) -> Mapping[str, Any]:
    """Return the settings of a preset.

    Raises:
        DataError: the name is unknown; the message lists the known ones.
    """
    if name not in PRESETS:
        raise DataError(f"unknown preset {shown(name)}; the presets are {', '.join(sorted(PRESETS, key=_family))}")
    return PRESETS[name]
