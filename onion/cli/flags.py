"""Flags that several commands have, and those of declared settings."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from onion.cli.values import natural, read
from onion.messages import shown
from onion.tasks.export.names import EIGHT_BITS
from onion.tasks.finetune.declared import GROUPS, Declared, declared_in
from onion.tasks.finetune.settings import Settings
from onion.tasks.teaching.settings import TaughtSettings
from onion.tasks.validators import COLUMNS


def add_output(command: argparse.ArgumentParser, text: str) -> None:
    """Add the folder that a command writes to."""
    command.add_argument("--output", type=Path, required=True, metavar="DIR", help=text)


def add_run(command: argparse.ArgumentParser) -> None:
    """Add the folder of a run."""
    command.add_argument("--run", type=Path, required=True, metavar="DIR", help="output folder of onion train")


def add_run_or_name(command: argparse._ActionsContainer, required: bool = True) -> None:
    """Add the folder of a run or an exported model, or the name of a published one."""
    text = "output folder of onion train or onion export, or OWNER/NAME of a model from onion push"
    command.add_argument("--run", required=required, metavar="DIR|NAME", help=text)


def add_task(command: argparse.ArgumentParser) -> None:
    """Add the choice of a task in a run of several."""
    command.add_argument("--task", metavar="NAME", help="which task, in a run of several")


def add_columns(command: argparse.ArgumentParser) -> None:
    """Add the names of columns, where task and file differ."""
    text = "columns of the task and of the file, where they differ (default: those of the training)"
    command.add_argument("--columns", type=partial(read, COLUMNS), metavar="OURS=THEIRS,...", help=text)


def add_threads(command: argparse.ArgumentParser) -> None:
    """Add the number of threads."""
    default = "$OMP_NUM_THREADS, or one per processor, at most 8"
    command.add_argument("--threads", type=natural, metavar="N", help=f"number of threads (default: {default})")


def add_quiet(command: argparse.ArgumentParser) -> None:
    """Add the flag that shows no progress."""
    text = "show no progress: no bar on a terminal, no lines elsewhere"
    command.add_argument("--quiet", action="store_true", help=text)


def add_set(command: argparse.ArgumentParser, text: str) -> None:
    """Add settings of a task."""
    text = f"{text}; may be repeated"
    command.add_argument("--set", action="append", type=assignment, default=[], metavar="NAME=VALUE", help=text)


def add_resumption(command: argparse.ArgumentParser) -> None:
    """Add the flags of a training in a folder, by one process or several."""
    force = "resume in a folder whose run differs in settings, data or items; differences are logged"
    command.add_argument("--force-resume", action="store_true", help=force)
    processes = "processes of this machine that train together (default: %(default)s)"
    command.add_argument("--processes", type=natural, default=1, metavar="N", help=processes)


def add_settings(command: argparse.ArgumentParser, without: Collection[str] = ()) -> None:
    """Add the flags of a training's settings."""
    add_quiet(command)
    command.add_argument("--preset", metavar="NAME", help="published settings, such as ernie/chnsenticorp")
    command.add_argument(
        "--config", type=Path, metavar="FILE", help=".yaml or .json file of settings; flags override it"
    )
    add_declared(command, {name: each for name, each in declared_in(Settings).items() if name not in without})
    length = "maximum tokens per example (default: 128; question-answering: 384)"
    command.add_argument("--max-length", type=natural, default=argparse.SUPPRESS, metavar="N", help=length)
    add_set(command, "set a setting of the task, such as label_smoothing=0.1 (onion tasks NAME lists them)")
    add_threads(command)


def add_declared(command: argparse.ArgumentParser, declared: Mapping[str, tuple[Declared, Any]]) -> None:
    """Add the flags of declared settings, under their headings."""
    for title in GROUPS:
        group = command.add_argument_group(title)
        for name, (setting, default) in declared.items():
            if setting.group == title:
                _add_setting(group, name, setting, default)


def _add_setting(group: argparse._ArgumentGroup, name: str, setting: Declared, default: Any) -> None:
    """Add the flag of a setting; one that is not given is absent from the options: a file or the task may set it."""
    told = None if default is False else setting.shown(default)
    text = f"{setting.help}; may be repeated" if setting.many else setting.help
    text = text if told is None else f"{text} (default: {told})"
    more: dict[str, Any]
    if isinstance(default, bool):
        more = {"action": argparse.BooleanOptionalAction}
    elif setting.many:
        more = {"action": "append", "metavar": setting.metavar}
    else:
        metavar = setting.metavar or ("N" if setting.check.reads is int else "X")
        more = {"type": partial(read, setting.check), "metavar": metavar}
    group.add_argument(f"--{name.replace('_', '-')}", help=text, default=argparse.SUPPRESS, **more)


def add_taught(command: argparse.ArgumentParser, kind: type[TaughtSettings], told: Mapping[str, str]) -> None:
    """Add the flags of a training by a teacher; ``told`` names the defaults of its recipe."""
    force = "resume in a folder whose run differs in settings or data; differences are logged"
    command.add_argument("--force-resume", action="store_true", help=force)
    add_quiet(command)
    declared = kind.declared()
    for name, default in told.items():
        declared[name] = attrs.evolve(declared[name][0], default=default), None
    add_declared(command, declared)


def add_smaller_export(command: argparse._ActionsContainer) -> None:
    """Add the flags by which an exported model becomes smaller."""
    bits = "8-bit weights in ONNX: dynamic (no data needed) or static (with --calibrate)"
    command.add_argument("--int8", choices=EIGHT_BITS, metavar="KIND", help=bits)
    lines = "table of rows, or lines as onion predict reads them from standard input, for --int8 static"
    command.add_argument("--calibrate", type=Path, metavar="FILE", help=lines)
    vocab = "file of texts whose tokens the model keeps, such as the training file (default: all tokens)"
    command.add_argument("--vocab", type=Path, metavar="FILE", help=vocab)


def dash(text: str) -> str:
    """Parse ``-``; files and texts have flags of their own."""
    if text != "-":
        raise argparse.ArgumentTypeError(f"got {shown(text)}; give a file by --input, and a text by --text")
    return text


def assignment(text: str) -> tuple[str, Any]:
    """Parse ``NAME=VALUE``; the value is JSON, or otherwise a string."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {shown(text)}")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value
