"""``onion compress``."""

from __future__ import annotations

import argparse

from onion.cli.commands import ended, start_paddle
from onion.cli.flags import add_output, add_smaller_export, add_taught, add_threads
from onion.tasks.compression.settings import RECIPE, CompressSettings
from onion.tasks.finetune.declared import declared_in


def add_flags(command: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    add_output(command, "folder for checkpoints and the log")
    add_taught(command, CompressSettings, {name: str(value) for name, value in RECIPE.items()})
    exported = "with one of these the best model is also written as ONNX, to the folder export in --output"
    add_smaller_export(command.add_argument_group("export", exported))
    add_threads(command)
    command.set_defaults(command=compress)


def compress(options: argparse.Namespace) -> int:
    """Train a smaller model of a trained one; print the onion, and at the end one line of JSON."""
    settings = CompressSettings.of(
        {name: value for name, value in vars(options).items() if name in declared_in(CompressSettings)}
    )
    start_paddle(options.threads)
    from onion.tasks.compression.compress import train

    exporting = {name: getattr(options, name) for name in ("int8", "calibrate", "vocab")}
    wanted = exporting if any(exporting.values()) else None
    return ended(train(settings, options.output, options.force_resume, options.quiet, wanted))
