"""What a task reads, measures and may be told, from its class and docstrings: for ``onion tasks`` and the docs.

Pretraining tasks have a summary and settings too (:func:`described`, :func:`settings_of`).
"""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

import attrs

from onion.tasks.task import Task

_ATTRIBUTES = re.compile(r"^Attributes:\n((?:    .*\n?|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^    (\w+): (.*(?:\n     .*)*)", re.MULTILINE)


@attrs.frozen
class TaskSetting:
    """A setting of a kind of task.

    Attributes:
        name: of the setting.
        default: as it is written in a config file; empty where the help tells of it.
        help: what it does.
    """

    name: str
    default: str
    help: str


@attrs.frozen
class TaskReference:
    """What there is to know of a kind of task before one uses it.

    Attributes:
        name: the value of ``--task``.
        summary: what it predicts, in a line.
        files: its data files and its predictions, in paragraphs.
        monitor: the metric that selects the best checkpoint.
        settings: all of them, in the order of the class.
    """

    name: str
    summary: str
    files: str
    monitor: str
    settings: tuple[TaskSetting, ...]


def reference_of(kind: type[Task]) -> TaskReference:
    """Return the reference of a kind of task; what its module and its class do not document is empty."""
    summary, rest = described(kind.name, kind)
    return TaskReference(kind.name, summary, rest, str(_monitor(kind)), settings_of(kind))


def described(name: str, kind: type) -> tuple[str, str]:
    """Return what the module of a class says of it: the first line, without its name, and the rest."""
    told = inspect.cleandoc(sys.modules[kind.__module__].__doc__ or "")
    first, _, rest = told.partition("\n")
    return first.removeprefix(f"``{name}``").lstrip(": "), rest.strip()


def settings_of(kind: type) -> tuple[TaskSetting, ...]:
    """Return the settings of an attrs class, with what the class and those it derives from say of them."""
    helps = _helps(kind)
    fields = [field for field in attrs.fields(kind) if field.init]
    return tuple(TaskSetting(each.name, _default(each), helps.get(each.name, "")) for each in fields)


def _helps(kind: type) -> dict[str, str]:
    """Return name -> help, from the sections ``Attributes`` of the class and those it derives from."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        section = _ATTRIBUTES.search(inspect.cleandoc(each.__doc__ or "") + "\n")
        entries = _ENTRY.findall(section[1]) if section else []
        found |= {name: " ".join(text.split()).rstrip(".") for name, text in entries}
    return found


def _monitor(kind: type[Task]) -> Any:
    """Return the metric; that of a task whose file decides, for files that say no more than they have to."""
    return kind().monitor if isinstance(inspect.getattr_static(kind, "monitor"), property) else kind.monitor


def _default(field: Any) -> str:
    value = field.default
    if value is None or value is attrs.NOTHING or isinstance(value, attrs.Factory):  # type: ignore[arg-type]
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if hasattr(value, "__len__") and not len(value) else str(value)
