"""Settings from a file, and their combination with presets and flags."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from onion.data.opening import opened
from onion.data.table import at
from onion.errors import DataError, OnionError
from onion.messages import shown
from onion.tasks.finetune.declared import declared_in
from onion.tasks.finetune.multitask_settings import MultiTaskSettings, TaskSettings
from onion.tasks.finetune.palm_config import from_palm
from onion.tasks.finetune.settings import Settings
from onion.tasks.registry import options_of

SEARCH = "search"
"""What a config file of ``onion tune`` has besides settings: what is searched."""


def read_config(path: Path) -> dict[str, Any]:
    """Read settings by name from a ``.yaml``, ``.yml`` or ``.json`` file; of PaddlePALM's too.

    Raises:
        DataError: it cannot be read, is not a mapping of settings, or has a general setting with an invalid value.
        OnionError: it is YAML, and PyYAML is not installed.
    """
    found = _read(path)
    settings = from_palm(path, found, _read) if "task_instance" in found else found
    _refuse_values(path, settings, MultiTaskSettings if "tasks" in settings else Settings)
    return settings


def read_settings(path: Path, kind: type) -> dict[str, Any]:
    """Read settings by name for a class that declares some of them; see :func:`read_config`."""
    found = _read(path)
    _refuse_values(path, found, kind)
    return found


def _refuse_values(path: Path, settings: Mapping[str, Any], kind: type) -> None:
    """Check the values of general settings while it is known which file they come from."""
    for name, (declared, default) in declared_in(kind).items():
        if name not in settings or (settings[name] is None and default is None):
            continue
        field = attrs.fields_dict(kind)[name]
        convert: Any = field.converter or (lambda value: value)
        try:
            declared.check(None, field, convert(settings[name]))
        except DataError as error:
            line = _line_of(path, name)
            raise (DataError(f"{path}: {error}") if line is None else at(path, line, str(error))) from None


def _line_of(path: Path, name: str) -> int | None:
    """Return the line in which a name is set, from 1; None if it stands in several, or in another file of PALM's."""
    with opened(path) as file:
        lines = file.read().decode("utf-8").splitlines()
    setting = re.compile(rf"""(^|[{{,\s])["']?{re.escape(name)}["']?\s*:""")
    found = [number for number, line in enumerate(lines, 1) if setting.search(line)]
    return found[0] if len(found) == 1 else None


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


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of several sources in one mapping, without ``options``; the later ones win.

    Raises:
        DataError: ``options`` is no mapping, or has a setting that is set beside it too.
    """
    found: dict[str, Any] = {}
    for layer in layers:
        own = layer.get("options", {})
        if not isinstance(own, Mapping):
            raise DataError(f"options must be a mapping of settings, got {shown(own)}")
        twice = [name for name in own if name in layer]
        if twice:
            raise DataError(f"{shown(twice[0])} is set both at the top level and under options; remove one")
        found |= {name: value for name, value in layer.items() if name != "options"}
        found |= own
    return found


def resolve(*layers: Mapping[str, Any]) -> Settings | MultiTaskSettings:
    """Put settings of several sources together; the later ones win. With ``tasks``, they are those of several tasks.

    A name that is no general setting is one of the task's own, which says whether it has it; of several tasks, one of
    each whose entry does not have it.

    Raises:
        DataError: a required setting is missing, or a value is invalid.
    """
    found = merged(*layers)
    if SEARCH in found:
        raise DataError(f"{SEARCH} is for onion tune; leave it out here, or take the best.json that onion tune writes")
    if "tasks" in found:
        return _of_several_tasks(found)
    fields = attrs.fields_dict(Settings)
    general = {name: value for name, value in found.items() if name in fields}
    options = {name: value for name, value in found.items() if name not in fields}
    missing = [name for name in ("task", "train", "dev") if name not in general]
    if missing:
        raise DataError(f"{missing[0]} is missing; set it with --{missing[0]} or in the config file")
    return Settings(**general, options=options)


def _of_several_tasks(given: Mapping[str, Any]) -> MultiTaskSettings:
    fields = attrs.fields_dict(MultiTaskSettings)
    for name in attrs.fields_dict(Settings):
        if name in given and name not in fields:
            entry = name in attrs.fields_dict(TaskSettings)
            told = "with several, write it into the entry of a task" if entry else "leave it out with several"
            raise DataError(f"{name} is a setting of one task; {told}")
    general = {name: value for name, value in given.items() if name in fields}
    shared = {name: value for name, value in given.items() if name not in fields}
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
