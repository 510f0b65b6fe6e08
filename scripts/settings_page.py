"""Write docs/settings.md from the settings as they are declared; ``make settings-page`` runs it.

python -m scripts.settings_page docs/settings.md
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from attrs import NOTHING

from onion.tasks.finetune.declared import GROUPS, Declared, declared_in
from onion.tasks.finetune.settings import Settings
from onion.tasks.pretraining.registry import WITH_SETTINGS
from onion.tasks.reference import TaskSetting, settings_of
from onion.tasks.registry import TASKS

HEAD = """# Settings

Every setting of `onion train` is a flag, a line of a config file (`--config`), and a keyword argument of `fine_tune`.
Flags override the file, and the file overrides a preset. Settings of [a kind of task](#settings-of-tasks), such as
`max_length`, are set with `--set NAME=VALUE` or in the config file; `onion tasks NAME` prints them. Those of several
tasks are in [several_tasks.md](several_tasks.md). This page is made by `make settings-page`.
"""

TASKS_HEAD = "## Settings of tasks\n\n[Tasks](tasks.md) describes files, metrics and predictions.\n"

PRETRAINING_HEAD = """## Settings of pretraining tasks

[Pretraining](pretraining.md) describes the tasks. A setting is `--set TASK.NAME=VALUE`, that of the masks `--set
masking.NAME=VALUE`; `onion tasks TASK` and `onion tasks masking` print them, `onion pretrain --help` those of the
training. A task without a `max_length` of its own has that of `--max-length`.
"""

TABLE = ("| setting | default | what it does |", "| --- | --- | --- |")


def page() -> str:
    """Return the text of the page."""
    declared = declared_in(Settings)
    parts = [HEAD]
    for title in GROUPS:
        rows = [_row(name, *each) for name, each in declared.items() if each[0].group == title]
        parts.append("\n".join([f"## {title.capitalize()}\n", *TABLE, *rows]) + "\n")
    parts.append(TASKS_HEAD)
    parts += map(_of_task, TASKS, TASKS.values())
    parts.append(PRETRAINING_HEAD)
    parts += map(_of_task, WITH_SETTINGS, WITH_SETTINGS.values())
    return "\n".join(parts)


def _of_task(name: str, kind: type) -> str:
    return "\n".join([f"### {name}\n", *TABLE, *map(_task_row, settings_of(kind))]) + "\n"


def _task_row(setting: TaskSetting) -> str:
    default = f"`{setting.default}`" if setting.default else ""
    return f"| `{setting.name}` | {default} | {setting.help.replace('``', '`').replace('|', '/')} |"


def _row(name: str, setting: Declared, default: Any) -> str:
    values = f" ({setting.check.wanted})" if setting.check.wanted.startswith("one of ") else ""
    return f"| `{name}` | {_default(setting, default)} | {setting.help.replace('|', '/')}{values} |"


def _default(setting: Declared, default: Any) -> str:
    if default is NOTHING:
        return "required"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    shown = setting.shown(default)
    return shown or "none" if shown == setting.default else f"`{shown}`"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
