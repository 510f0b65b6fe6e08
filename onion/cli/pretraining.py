"""The command ``onion pretrain``."""

from __future__ import annotations

import argparse
from typing import Any

from onion.cli.commands import chosen, ended, start_paddle
from onion.cli.processes import run_in_processes
from onion.host import launch
from onion.tasks.pretraining.settings import EXCLUSIVE, PretrainingSettings


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
    return ended(trained)


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of file and flags; the latter win, and replace what they exclude."""
    from onion.tasks.finetune.config_file import read_settings

    file = {} if options.settings is None else read_settings(options.settings, PretrainingSettings)
    flags = {name: value for name, value in vars(options).items() if name in PretrainingSettings.declared()}
    for pair in EXCLUSIVE:
        if any(name in flags for name in pair):
            file = {name: value for name, value in file.items() if name not in pair}
    own = {**file.pop("options", {}), **file, **flags, **chosen(options, flags)}
    return {name: value for name, value in own.items() if value is not None}
