"""The config files of PaddlePALM 1.x's Controller, read as the settings of a training of several tasks.

A global file names the tasks (``task_instance``), and ``NAME.yaml`` beside it is the file of a task. Keys of the global
file take precedence over those of a task's, as PALM broadcasts them. What has no counterpart is logged, never dropped
in silence. (PaddlePALM v0.2.3, ``paddlepalm/mtl_controller.py``)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onion.errors import DataError
from onion.messages import listed, shown

log = logging.getLogger("onion")

KINDS = {"cls": "classification", "match": "matching", "mlm": "masked-lm", "mrc": "question-answering"}
"""PALM's paradigms, and what the same kinds of task are called here."""

GENERAL = {
    "batch_size": "batch_size",
    "learning_rate": "learning_rate",
    "num_epochs": "passes",
    "pred_batch_size": "test_batch_size",
    "print_every_n_steps": "log_every",
    "random_seed": "seed",
    "warmup_proportion": "warmup_ratio",
    "weight_decay": "weight_decay",
}
"""PALM's global keys and the settings that they are."""

OF_TASKS = {
    "doc_stride": "doc_stride",
    "max_answer_len": "max_answer_length",
    "max_query_len": "max_query_length",
    "max_seq_len": "max_length",
    "n_best_size": "n_best",
}
"""Keys of a task's file, or of the global one for all of them, and the options of a task that they are."""

OF_EACH = ("mix_ratio", "target_tag", "task_reuse_tag")
"""Keys of the global file with a value for each task."""

MEANT = {"task_instance", "mix_ratio", "target_tag", "task_reuse_tag", "paradigm", "reader", "train_file"}
MEANT |= {"backbone_config_path", "encoder", "use_ema", "ema_decay", "lr_scheduler", "save_ckpt_every_n_steps"}
"""Keys that are read below."""

IMPLIED = {
    "backbone": "the encoder's folder has its architecture",
    "do_lower_case": "the encoder's folder has its tokenizer",
    "for_cn": "the encoder's folder has its tokenizer",
    "n_classes": "the training file has the labels",
    "optimizer": "AdamW, which is PALM's Adam with its weight decay",
    "pred_file": "give it to onion predict --input",
    "pred_output_path": "give it to onion predict --output",
    "print_first_n": "errors name the row that they are in",
    "save_infermodel_every_n_steps": "every checkpoint predicts",
    "save_path": "give it to --output",
    "shuffle": "the training data are shuffled, unless a task is a stream",
    "use_gpu": "the device is Paddle's",
    "vocab_path": "the encoder's folder has its vocabulary",
}
"""Keys that change nothing here, and why."""


def from_palm(path: Path, given: Mapping[str, Any], read: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """Return the settings of a global file of PALM, as a config file of several tasks has them.

    Args:
        path: the global file, for messages and to find those of the tasks beside it.
        given: what it holds.
        read: reads the file of a task.

    Raises:
        DataError: a file or key is missing, or a list has another length than there are tasks.
    """
    names = _names(path, given["task_instance"])
    ratios, targets, tags = (
        _of_tasks(path, given, key, names) for key in ("mix_ratio", "target_tag", "task_reuse_tag")
    )
    _log_rest(path, given)
    owners: dict[str, str] = {}
    tasks = {}
    for name, ratio, target, tag in zip(names, ratios, targets, tags, strict=True):
        tasks[name] = _task(path, name, given, read)
        if ratio is not None:
            tasks[name]["mix_ratio"] = ratio
        if target is not None:
            tasks[name]["target"] = str(target) not in ("0", "False", "false")
        if tag is not None and owners.setdefault(str(tag), name) != name:
            tasks[name]["share_head_with"] = owners[str(tag)]
    return {**_general(path, given), "tasks": tasks}


def _task(path: Path, name: str, given: Mapping[str, Any], read: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    file = path.with_name(f"{name}.yaml")
    own = read(file)
    _log_rest(file, own)
    merged = {**own, **given}
    paradigm = own.get("paradigm", own.get("reader"))
    if not isinstance(paradigm, str) or paradigm not in KINDS:
        raise DataError(f"{file}: paradigm must be one of {', '.join(KINDS)}, got {shown(paradigm)}")
    if "train_file" not in merged:
        raise DataError(f"{file}: train_file is missing; add the training file of the task")
    known = {"classification": ("max_seq_len",), "matching": ("max_seq_len",), "masked-lm": ("max_seq_len",)}
    keys = known.get(KINDS[paradigm], tuple(OF_TASKS))
    options = {OF_TASKS[key]: merged[key] for key in keys if key in merged}
    return {"task": KINDS[paradigm], "train": merged["train_file"], **options}


def _general(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    found = {ours: given[theirs] for theirs, ours in GENERAL.items() if theirs in given}
    found.setdefault("warmup_ratio", 0.0)
    if given.get("use_ema"):
        found["ema_decay"] = given.get("ema_decay", 0.9999)
    if given.get("save_ckpt_every_n_steps", -1) not in (-1, 0):
        found["save_every"] = given["save_ckpt_every_n_steps"]
    found["schedule"] = "palm"
    if "encoder" in given:
        return {**found, "encoder": given["encoder"]}
    if "backbone_config_path" not in given:
        raise DataError(
            f"{path}: add 'encoder: FOLDER', the folder with the weights, config and vocabulary of the backbone"
        )
    return {**found, "encoder": str(Path(str(given["backbone_config_path"])).parent)}


def _of_tasks(path: Path, given: Mapping[str, Any], key: str, names: list[str]) -> list[Any]:
    if key not in given:
        return [None] * len(names)
    values = _list(path, key, given[key])
    if len(values) != len(names):
        raise DataError(f"{path}: {key} has {len(values)} values for {len(names)} tasks ({listed(names)})")
    return values


def _list(path: Path, key: str, value: Any) -> list[Any]:
    """Return a list, which PALM writes as a text with commas."""
    values = [each.strip() for each in value.split(",")] if isinstance(value, str) else value
    values = values if isinstance(values, list) else [values]
    if not values or not all(isinstance(each, str | int | float) and each != "" for each in values):
        raise DataError(f"{path}: {key} must be a list, such as 'a, b', got {shown(value)}")
    return values


def _names(path: Path, value: Any) -> list[str]:
    names = [str(each) for each in _list(path, "task_instance", value)]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{path}: task_instance has {shown(name)} twice; remove one")
        if "/" in name or "." in name:
            raise DataError(f"{path}: task_instance: {shown(name)} cannot be the name of a task; leave '/' and '.' out")
    return names


def _log_rest(path: Path, given: Mapping[str, Any]) -> None:
    known = {*MEANT, *GENERAL, *OF_TASKS, *IMPLIED}
    unknown = [key for key in given if key not in known]
    if unknown:
        raise DataError(f"{path}: {shown(unknown[0])} is no key of PaddlePALM that onion knows; remove it")
    for key in given:
        if key in IMPLIED:
            log.info("%s: %s is not used: %s", path, key, IMPLIED[key])
