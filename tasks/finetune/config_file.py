"""Settings from a file, and their combination with presets and flags."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from onion.data.opening import opened
from onion.data.table import at
from onion.errors import DataError, OnionError
from onion.messages import shown
from onion.tasks.finetune.multitask_settings import MultiTaskSettings, TaskSettings
from onion.tasks.finetune.palm_config import from_palm
from onion.tasks.finetune.settings import Settings
from onion.tasks.registry import options_of


def read_config(path: Path) -> dict[str, Any]:
    """Read settings by name from a ``.yaml``, ``.yml`` or ``.json`` file; of PaddlePALM's too.

    Raises:
        DataError: it cannot be read, or is not a mapping of settings.
        OnionError: it is YAML, and PyYAML is not installed.
    """
    found = _read(path)
    return from_palm(path, found, _read) if "task_instance" in found else found


def _read(path: Path) -> dict[str, Any]:
    with opened(path) as file:
        text = file.read().decode("utf-8")  # opened() reports errors
    if path.suffix == ".json":
        found = _from_json(path, text)
    elif path.suffix in (".yaml", ".yml"):
        found = _from_yaml(path, text)
    else:
        raise DataError(f"{path}: unknown type of file; its name must end in .yaml, .yml or .json")
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise DataError(f"{path}: must be a mapping of settings, such as 'passes: 3'")
    return found


def _from_json(path: Path, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=partial(_object, path))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: broken JSON ({error})") from None


def _object(path: Path, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object without duplicate names, of which Python would silently take the last."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise DataError(f"{path}: {shown(name)} is set twice; remove one")
        found[name] = value
    return found


def _from_yaml(path: Path, text: str) -> Any:
    try:
        import yaml
    except ModuleNotFoundError:
        raise OnionError(f"{path}: YAML needs PyYAML: pip install 'onion-paddle[yaml]', or write it as .json") from None
    try:
        found = yaml.safe_load(text)
        # Nested aliases expand to more than fits into memory, and a recursive one is endless. Checked after loading,
        # which refuses endless brackets immediately; here they would be slow.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
            raise DataError(f"{path}: aliases (*name) are not allowed; write the value out")
        _refuse_twins(path, yaml.compose(text, yaml.SafeLoader))
        return found
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError) as error:
        # LookupError, AttributeError: raised by PyYAML if a value does not match its tag, as in !!int ''
        raise DataError(f"{path}: broken YAML: {' '.join(str(error).split())}") from None


def _refuse_twins(path: Path, node: Any) -> None:
    """Refuse duplicate names in what ``yaml.compose`` returns; PyYAML would take the last."""
    inner: list[Any] = []
    if node is not None and node.id == "sequence":
        inner = node.value
    elif node is not None and node.id == "mapping":
        inner = [value for _, value in node.value]
        lines: dict[str, int] = {}
        for name, _ in node.value:
            line = name.start_mark.line + 1
            if name.value in lines:
                raise at(path, line, f"{shown(name.value)} is also set in line {lines[name.value]}; remove one")
            lines[name.value] = line
    for each in inner:
        _refuse_twins(path, each)


def resolve(*layers: Mapping[str, Any]) -> Settings | MultiTaskSettings:
    """Put settings of several sources together; the later ones win. With ``tasks``, they are those of several tasks.

    A name that is no general setting is one of the task's own, which says whether it has it; of several tasks, one of
    each whose entry does not have it.

    Raises:
        DataError: a required setting is missing, or a value is invalid.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        own = layer.get("options", {})
        if not isinstance(own, Mapping):
            raise DataError(f"options must be a mapping of settings, got {shown(own)}")
        twice = [name for name in own if name in layer]
        if twice:
            raise DataError(f"{shown(twice[0])} is set both at the top level and under options; remove one")
        merged |= {name: value for name, value in layer.items() if name != "options"}
        merged |= own
    if "tasks" in merged:
        return _of_several_tasks(merged)
    fields = attrs.fields_dict(Settings)
    general = {name: value for name, value in merged.items() if name in fields}
    options = {name: value for name, value in merged.items() if name not in fields}
    missing = [name for name in ("task", "train", "dev") if name not in general]
    if missing:
        raise DataError(f"{missing[0]} is missing; set it with --{missing[0]} or in the config file")
    return Settings(**general, options=options)


def _of_several_tasks(merged: Mapping[str, Any]) -> MultiTaskSettings:
    for name in ("task", "train", "dev", "columns", "stream", "init_head"):
        if name in merged:
            raise DataError(f"{name} is a setting of one task; with several, write it into the entry of a task")
    fields = attrs.fields_dict(MultiTaskSettings)
    general = {name: value for name, value in merged.items() if name in fields}
    shared = {name: value for name, value in merged.items() if name not in fields}
    settings = MultiTaskSettings(**general)
    return attrs.evolve(settings, tasks=_shared_among(settings.tasks, shared))


def _shared_among(tasks: Mapping[str, TaskSettings], shared: Mapping[str, Any]) -> dict[str, TaskSettings]:
    """Give settings of tasks to each task of a kind that has them, unless its entry has its own."""
    known = {name: options_of(task.task) for name, task in tasks.items()}
    for option in shared:
        if not any(option in options for options in known.values()):
            raise DataError(f"unknown setting {shown(option)}: neither a training nor one of its tasks has it")
    return {
        name: attrs.evolve(
            task, options={**{key: value for key, value in shared.items() if key in known[name]}, **task.options}
        )
        for name, task in tasks.items()
    }
