"""The command ``onion pretrain``."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from onion.cli.commands import start_paddle
from onion.cli.processes import run_in_processes
from onion.errors import DataError
from onion.host import launch
from onion.tasks.pretraining.settings import EXCLUSIVE, PretrainingSettings
from onion.text_formats import json_text


def pretrain(options: argparse.Namespace) -> int:
    """Pretrain an encoder; print the onion, and at the end one line of JSON."""
    if options.processes > 1 and launch.world_size() == 1:
        return run_in_processes(options.processes, options.arguments, options.output / "logs")
    start_paddle(options.threads)
    launch.end_with_launcher()
    from onion.tasks.pretraining.pretrain import made, train

    trained = train(
        made(_given(options)),
        options.output,
        extend=options.extend,
        force_resume=options.force_resume,
        quiet=options.quiet,
    )
    if launch.rank() == 0:
        print(json_text(trained.report))
    if trained.signal is None:
        return 0
    print(f"onion: stopped at step {trained.report['step']}; the same command resumes it", file=sys.stderr)
    return 128 + int(trained.signal)


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of file and flags; the latter win, and replace what they exclude."""
    from onion.tasks.finetune.config_file import read_settings

    file = {} if options.settings is None else read_settings(options.settings, PretrainingSettings)
    flags = {name: value for name, value in vars(options).items() if name in PretrainingSettings.declared()}
    for pair in EXCLUSIVE:
        if any(name in flags for name in pair):
            file = {name: value for name, value in file.items() if name not in pair}
    chosen: dict[str, Any] = {}
    for name, value in options.set:
        if name in chosen or name in flags:
            other = "--set" if name in chosen else f"--{name.replace('_', '-')}"
            raise DataError(f"{name} is set twice, by {other} and by --set; remove one of them")
        chosen[name] = value
    own = {**file.pop("options", {}), **file, **flags, **chosen}
    return {name: value for name, value in own.items() if value is not None}
