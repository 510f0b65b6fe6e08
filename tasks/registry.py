"""The tasks by name. A new one is a file beside this one and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from onion.errors import CheckpointError, DataError
from onion.messages import shown
from onion.tasks.classification import Classification
from onion.tasks.masked_lm.task import MaskedLM
from onion.tasks.matching import Matching
from onion.tasks.multilabel import MultiLabel
from onion.tasks.names import OLD_NAMES, current_name
from onion.tasks.question_answering.task import QuestionAnswering
from onion.tasks.regression import Regression
from onion.tasks.task import Task
from onion.tasks.token_classification.task import TokenClassification

TASKS: dict[str, type[Task]] = {
    kind.name: kind
    for kind in (Classification, Regression, Matching, MultiLabel, MaskedLM, TokenClassification, QuestionAnswering)
}


def register(task: Task) -> str:
    """Register a task of your own, and return its name.

    Raises:
        DataError: another task has the name, or had it in earlier versions.
    """
    if task.name in OLD_NAMES or TASKS.setdefault(task.name, type(task)) is not type(task):
        raise DataError(f"the name {task.name!r} belongs to another task; rename yours")
    return task.name


def get_task(name: str, settings: Mapping[str, Any]) -> Task:
    """Return the task with this name, or alias, and these settings.

    Raises:
        DataError: there is no such task, or it has no such setting.
    """
    return kind_of(name).from_settings(settings)


def kind_of(name: str) -> type[Task]:
    """Return the class of the task with this name, or alias; raise a DataError if there is no such task."""
    name = current_name(name)
    if name not in TASKS:
        raise DataError(f"unknown task {shown(name)}; the tasks are {', '.join(TASKS)}")
    return TASKS[name]


def options_of(name: str) -> tuple[str, ...]:
    """Return the names of the settings of a kind of task; of an unknown one, none."""
    return tuple(field.name for field in attrs.fields(TASKS[name]) if field.init) if name in TASKS else ()


def recorded_task(record: Any, where: object) -> Task:
    """Return the task of a record written by :meth:`Task.record`.

    Raises:
        CheckpointError: it is damaged, of another version, or its task is not registered.
    """
    name = current_name(record.get("task")) if isinstance(record, dict) else None
    if isinstance(name, str) and name not in TASKS:
        raise CheckpointError(
            f"{where}: unknown task {shown(name)}; register a task of your own with onion.tasks.registry.register "
            f"before its run is read; the tasks are {', '.join(TASKS)}"
        )
    try:
        return get_task(record["task"], {name: value for name, value in record.items() if name != "task"})
    except (DataError, TypeError, KeyError) as error:
        raise CheckpointError(f"{where} is damaged, or of another version of onion ({error})") from None
