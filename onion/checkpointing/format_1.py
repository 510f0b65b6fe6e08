"""Checkpoints of format 1, which was written before 0.1.0: the names of today for what it holds.

Values are the same in both formats; items, classes and their arguments had other names.
"""

from __future__ import annotations

from typing import Any

ITEMS = {
    "averaged": "use_average",
    "early_stop": "early_stopping",
    "frozen": "stop_gradient",
    "into_batch": "outputs_to_batch",
    "limit": "time_limit",
}
"""Default name of an item then -> now."""

CLASSES = {
    "Averaged": "UseAverage",
    "ByCost": "ByLoss",
    "EarlyStop": "EarlyStopping",
    "Forge": "FakeGenerator",
    "Frozen": "StopGradient",
    "IntoBatch": "OutputsToBatch",
    "Limit": "TimeLimit",
    "MaskedWords": "MaskedLM",
    "Reading": "QuestionAnswering",
    "Tagging": "TokenClassification",
    "Task": "TaskData",
}

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


def renamed_run(run: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a run under their names of today."""
    renamed = {"loss" if key == "cost" else key: value for key, value in run.items()}
    if isinstance(run.get("onion"), dict):
        renamed["onion"] = _onion(run["onion"])
    return renamed


def renamed_item(name: str) -> str:
    """Return the name of today of an item, which may be numbered (``early_stop-2``)."""
    own, hyphen, number = name.rpartition("-")
    if not (hyphen and number.isdecimal()):
        return ITEMS.get(name, name)
    return ITEMS.get(own, own) + hyphen + number


def _onion(onion: dict[str, Any]) -> dict[str, Any]:
    """Rename the items of an onion, and what each was made of."""
    return {renamed_item(name): _described(item) for name, item in onion.items()}


def _described(value: Any) -> Any:
    """Rename the classes and arguments in a description."""
    if isinstance(value, list):
        return [_described(each) for each in value]
    if isinstance(value, str):
        return CLASSES.get(value, value)
    if not isinstance(value, dict):
        return value
    if "class" not in value:
        is_onion = all(isinstance(each, dict) and "class" in each and "in" in each for each in value.values())
        return _onion(value) if value and is_onion else {key: _described(each) for key, each in value.items()}
    kind = str(CLASSES.get(value["class"], value["class"]))
    names = ARGUMENTS.get(kind, {})
    described = {names.get(key, key): _described(each) for key, each in value.items()}
    if isinstance(described.get("in"), str):
        described["in"] = renamed_item(described["in"])
    return described
