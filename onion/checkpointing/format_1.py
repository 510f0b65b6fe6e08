"""Checkpoints of format 1, which was written before 0.1.0: the names of today for what it holds.

Values are the same in both formats; items, classes and their arguments had other names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

CLASSES = {
    "Averaged": "UseAverage",
    "ByCost": "ByLoss",
    "Control": "ControlServer",
    "DriftWatch": "DriftDetector",
    "EarlyStop": "EarlyStopping",
    "Forge": "FakeGenerator",
    "Frozen": "StopGradient",
    "IntoBatch": "OutputsToBatch",
    "Limit": "TimeLimit",
    "MaskedWords": "MaskedLM",
    "ProgressiveTest": "ProgressiveValidation",
    "RaisedRate": "LearningRateBoost",
    "Reading": "QuestionAnswering",
    "Record": "Journal",
    "Tagging": "TokenClassification",
    "Task": "TaskData",
}
"""Class then -> now."""

DEFAULT_NAMES = {
    "Averaged": ("averaged", "use_average"),
    "Control": ("control", "control_server"),
    "DriftWatch": ("drift_watch", "drift_detector"),
    "EarlyStop": ("early_stop", "early_stopping"),
    "Forge": ("forge", "fake_generator"),
    "Frozen": ("frozen", "stop_gradient"),
    "IntoBatch": ("into_batch", "outputs_to_batch"),
    "Limit": ("limit", "time_limit"),
    "RaisedRate": ("raised_rate", "learning_rate_boost"),
    "Record": ("record", "journal"),
}
"""Class then -> the default name of its items then and now; an item that its user named keeps that name."""

ARGUMENTS = {
    "DataProvider": {"length": "lengths"},
    "EarlyStopping": {"metric": "monitor", "by": "min_delta"},
    "Forward": {"cost": "loss"},
    "GradientMachine": {"cost": "loss"},
    "LossScale": {
        "backoff": "backoff_factor",
        "backoff_every": "backoff_interval",
        "growth": "growth_factor",
        "growth_every": "growth_interval",
    },
    "NanGuard": {"every": "snapshot_every", "gradients": "check_gradients", "look": "check_every"},
    "SplitOnMemoryError": {"floor": "min_examples"},
}
"""Class of today -> its arguments then -> now."""


def renamed(run: dict[str, Any], items: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of a run, and the states of its items, under the names of today."""
    names = dict(_renamed_items(run.get("onion")))
    values = {"loss" if name == "cost" else name: value for name, value in run.items()}
    if "onion" in values:
        values["onion"] = _described(values["onion"], names)
    return values, {names.get(name, name): state for name, state in items.items()}


def _renamed_items(described: Any) -> Iterator[tuple[str, str]]:
    """Yield the names then and now of items that have others now, in inner runners too."""
    for name, value in described.items() if isinstance(described, dict) else ():
        if isinstance(value, dict):
            before, now = DEFAULT_NAMES.get(str(value.get("class")), ("", ""))
            if before and re.fullmatch(rf"{before}(-\d+)?", name):  # several of one name are numbered
                yield name, now + name.removeprefix(before)
            yield from _renamed_items(value)


def _described(value: Any, names: dict[str, str]) -> Any:
    """Rename items, classes and arguments in a description."""
    if isinstance(value, list):
        return [_described(each, names) for each in value]
    if isinstance(value, str):
        of, dot, rest = value.partition(".")  # a class, or a function that one has made
        return CLASSES.get(of, of) + dot + rest if not dot or ".<locals>." in value else value
    if not isinstance(value, dict):
        return value
    kind = value.get("class")
    arguments = ARGUMENTS.get(CLASSES.get(kind, kind), {}) if isinstance(kind, str) else {}
    described = {names.get(name, arguments.get(name, name)): _described(each, names) for name, each in value.items()}
    if isinstance(described.get("in"), str):
        described["in"] = names.get(described["in"], described["in"])
    return described
