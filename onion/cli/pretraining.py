"""The command ``onion pretrain``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from onion.cli.commands import chosen, ended, start_paddle
from onion.cli.flags import add_declared, add_output, add_quiet, add_resumption, add_set, add_threads
from onion.cli.processes import run_in_processes
from onion.host import launch
from onion.tasks.pretraining.settings import EXCLUSIVE, PretrainingSettings


def add_flags(command: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    add_output(command, "folder for checkpoints, the log and the encoder")
    extend = "go on with a run of fewer tasks in the folder: the same encoder and optimizer, and fresh heads"
    command.add_argument("--extend", action="store_true", help=extend)
    add_resumption(command)
    add_quiet(command)
    file = ".yaml or .json file of settings; flags override it"
    command.add_argument("--settings", type=Path, metavar="FILE", help=file)
    add_declared(command, PretrainingSettings.declared())
    add_set(command, "set a setting of a task or of the masks, such as masking.share=0.2")
    add_threads(command)
    command.set_defaults(command=pretrain)


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
