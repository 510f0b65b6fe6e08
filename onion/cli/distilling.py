"""``onion distill``."""

from __future__ import annotations

import argparse

from onion.cli.commands import ended, start_paddle
from onion.cli.flags import add_output, add_taught, add_threads
from onion.tasks.finetune.declared import declared_in
from onion.tasks.students.settings import RECIPES, DistillSettings


def add_flags(command: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    add_output(command, "folder for checkpoints, the log and the teacher's logits")
    told = {
        name: ", ".join(dict.fromkeys(f"{student} {recipe[name]}" for student, recipe in RECIPES.items()))
        for name in sorted({name for recipe in RECIPES.values() for name in recipe})
    }
    add_taught(command, DistillSettings, told)
    add_threads(command)
    command.set_defaults(command=distill)


def distill(options: argparse.Namespace) -> int:
    """Train a student of a trained model; print the onion, and at the end one line of JSON."""
    settings = DistillSettings.of(
        {name: value for name, value in vars(options).items() if name in declared_in(DistillSettings)}
    )
    start_paddle(options.threads)
    from onion.tasks.students.distill import train

    return ended(train(settings, options.output, options.force_resume, options.quiet))
