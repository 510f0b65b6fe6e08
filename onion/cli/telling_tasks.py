"""``onion tasks``: a line for each kind of task, or what files and settings one has."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from onion.cli.commands import start_paddle

if TYPE_CHECKING:
    from onion.tasks.reference import TaskSetting

WIDTH = 110
"""Characters in a line."""


def tasks(options: argparse.Namespace) -> int:
    """Print all of them, or one; a task of ``onion pretrain`` too, and what its masks may be told."""
    start_paddle()
    lines = _all() if options.name is None else _of_pretraining(options.name) or _of_training(options.name)
    print("\n".join(lines).replace("``", ""))
    return 0


def _all() -> list[str]:
    from onion.tasks.pretraining.registry import PRETRAINING_TASKS
    from onion.tasks.reference import described, reference_of
    from onion.tasks.registry import TASKS

    told = {name: reference_of(kind).summary for name, kind in TASKS.items()}
    told |= {name: f"{described(name, kind)[0]} (pretrain)" for name, kind in PRETRAINING_TASKS.items()}
    return [f"{name:22}{summary}" for name, summary in told.items()]


def _of_training(name: str) -> list[str]:
    from onion.tasks.reference import reference_of
    from onion.tasks.registry import kind_of

    reference = reference_of(kind_of(name))
    head = [f"{reference.name}: {reference.summary}", "", reference.files, "", f"Metric: {reference.monitor}", ""]
    return [*head, "Settings, by --set NAME=VALUE or in a config file:", *_settings(reference.settings)]


def _of_pretraining(name: str) -> list[str]:
    """Return nothing if pretraining knows no such task."""
    from onion.tasks.pretraining.registry import WITH_SETTINGS
    from onion.tasks.reference import described, settings_of

    if name not in WITH_SETTINGS:
        return []
    kind = WITH_SETTINGS[name]
    summary, rest = described(name, kind)
    where = f"Settings, by --set {name}.NAME=VALUE of onion pretrain or in its file of settings:"
    return [f"{name}: {summary}", "", rest, "", where, *_settings(settings_of(kind))]


def _settings(settings: Iterable[TaskSetting]) -> list[str]:
    lines: list[str] = []
    for setting in settings:
        default = f" (default: {setting.default})" if setting.default else ""
        told = f"{setting.name}: {setting.help}{default}"
        lines += textwrap.wrap(told, WIDTH, initial_indent="  ", subsequent_indent=" " * 6)
    return lines
